// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

// The two 16-bit floating point types. Arithmetic is done in float and rounded to nearest even.

namespace tenon {

/// IEEE 754 binary16.
struct Half {
  uint16_t bits = 0;

  Half() = default;
  explicit Half(float value) : bits(FromFloat(value)) {}
  template <typename T>
  explicit Half(T value) : Half(static_cast<float>(value)) {}
  operator float() const { return ToFloat(bits); }
  static Half FromBits(uint16_t bits) {
    Half h;
    h.bits = bits;
    return h;
  }

  static float ToFloat(uint16_t h) { return static_cast<float>(std::bit_cast<_Float16>(h)); }
  static uint16_t FromFloat(float f) { return std::bit_cast<uint16_t>(static_cast<_Float16>(f)); }
};

/// The upper half of an IEEE 754 binary32.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(float value) : bits(FromFloat(value)) {}
  template <typename T>
  explicit BFloat16(T value) : BFloat16(static_cast<float>(value)) {}
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static BFloat16 FromBits(uint16_t bits) {
    BFloat16 b;
    b.bits = bits;
    return b;
  }

  static uint16_t FromFloat(float f) {
    const uint32_t u = std::bit_cast<uint32_t>(f);
    if (std::isnan(f)) return static_cast<uint16_t>((u >> 16) | 0x40);
    return static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
  }
};

}  // namespace tenon
