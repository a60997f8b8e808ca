// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/tensor/dtype.h"

// The two 8-bit floating point types that tensors are cast to and from, as "FP8 Formats for Deep
// Learning" (Micikevicius et al., 2022) has them. Conversion rounds to nearest even.

namespace tenon {

/// The code of `value` in a format of `kMantissa` bits whose exponent 1 means 2^(1 - kBias);
/// `kOverflow` and `kNan` are what follows the largest finite code, and no number.
template <int kMantissa, int kBias, uint8_t kOverflow, uint8_t kNan>
uint8_t Float8Bits(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint8_t sign = static_cast<uint8_t>(bits >> 63 << 7);
  const double size = std::abs(value);
  if (std::isnan(value)) return sign | kNan;
  if (size >= 65536 * 2) return sign | kOverflow;
  const int exponent = std::max(static_cast<int>(bits >> 52 & 0x7ff) - 1023, 1 - kBias);
  const int lift = kMantissa - exponent;
  const double scale = std::bit_cast<double>(static_cast<uint64_t>(lift + 1023) << 52);
  // A double of this size has no bits for fractions, so that the sum rounds to nearest even.
  constexpr double kWhole = 4503599627370496.0;
  const int steps = static_cast<int>((size * scale + kWhole) - kWhole);
  const int code = ((exponent + kBias - 1) << kMantissa) + steps;
  return sign | static_cast<uint8_t>(code < kOverflow ? code : kOverflow);
}

/// Five bits of exponent, two of mantissa; infinities and NaNs as binary16 has them.
struct Float8E5M2 {
  uint8_t bits = 0;

  Float8E5M2() = default;
  explicit Float8E5M2(double value) : bits(Float8Bits<2, 15, 0x7c, 0x7e>(value)) {}
  explicit operator float() const { return Half::ToFloat(static_cast<uint16_t>(bits << 8)); }
};

/// Four bits of exponent, three of mantissa; no infinities, and one NaN of each sign.
struct Float8E4M3FN {
  uint8_t bits = 0;

  Float8E4M3FN() = default;
  explicit Float8E4M3FN(double value) : bits(Float8Bits<3, 7, 0x7f, 0x7f>(value)) {}
  explicit operator float() const {
    const int exponent = bits >> 3 & 0xf, mantissa = bits & 7;
    float size = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                               : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
    if ((bits & 0x7f) == 0x7f) size = std::numeric_limits<float>::quiet_NaN();
    return bits & 0x80 ? -size : size;
  }
};

template <>
struct DTypeTraits<Float8E5M2> {
  static constexpr DType kType = DType::kFloat8E5M2;
};
template <>
struct DTypeTraits<Float8E4M3FN> {
  static constexpr DType kType = DType::kFloat8E4M3FN;
};

using Float8Types = TypeList<Float8E5M2, Float8E4M3FN>;

}  // namespace tenon
