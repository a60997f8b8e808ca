// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

#include "core/tensor/dtype.h"
#include "ops/random/philox.h"

// What blocks of random words become, bit for bit as in TensorFlow: the order in which words are
// used, the single precision steps and glibc's logf, sinf and cosf all matter. Files with these
// must not be compiled with a vector library or relaxed floating point.

namespace tenon {

template <typename T>
TENON_HD T UniformOf(uint32_t x) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>((x & 0x7fffff) | 127u << 23) - 1.0f;
  } else if constexpr (std::is_same_v<T, Half>) {
    return Half(Half::FromBits(static_cast<uint16_t>((x & 0x3ff) | 15 << 10)) - 1.0f);
  } else {
    return BFloat16(BFloat16::FromBits(static_cast<uint16_t>((x & 0x7f) | 127 << 7)) - 1.0f);
  }
}

TENON_HD inline double UniformOf(uint32_t a, uint32_t b) {
  return std::bit_cast<double>(uint64_t{1023} << 52 | uint64_t{a & 0xfffff} << 32 | b) - 1.0;
}

/// The uniform values in [0, 1) that one block gives.
template <typename T>
TENON_HD auto Uniform(const Philox::Block& x) {
  if constexpr (std::is_same_v<T, double>) {
    return std::array{UniformOf(x[0], x[1]), UniformOf(x[2], x[3])};
  } else {
    return std::array{UniformOf<T>(x[0]), UniformOf<T>(x[1]), UniformOf<T>(x[2]),
                      UniformOf<T>(x[3])};
  }
}

/// The functions that normal values are made with, on the host: those of its C library.
struct HostMaths {
  template <typename C>
  static C LogOf(C x) {
    return std::log(x);
  }
  template <typename C>
  static C SinOf(C x) {
    return std::sin(x);
  }
  template <typename C>
  static C CosOf(C x) {
    return std::cos(x);
  }
};

/// Box and Muller's two normal values from each two uniform ones.
template <typename C, typename Maths = HostMaths>
TENON_HD auto Normal(const Philox::Block& x) {
  auto values = Uniform<C>(x);
  for (size_t i = 0; i < values.size(); i += 2) {
    const C u = std::max(values[i], C(1.0e-7));
    const C v = static_cast<C>(2 * std::numbers::pi * values[i + 1]);
    const C r = std::sqrt(C(-2) * Maths::LogOf(u));
    values[i] = Maths::SinOf(v) * r;
    values[i + 1] = Maths::CosOf(v) * r;
  }
  return values;
}

/// The words of a block as integers.
template <typename T>
TENON_HD auto Integers(const Philox::Block& x) {
  if constexpr (sizeof(T) == 4) {
    return x;
  } else {
    return std::array<uint64_t, 2>{x[0] | uint64_t{x[1]} << 32, x[2] | uint64_t{x[3]} << 32};
  }
}

/// The integer of [low, high) that a word of its size stands for. REQUIRES: low < high.
template <typename T>
TENON_HD T IntegerBetween(T low, T high, std::make_unsigned_t<T> word) {
  using U = std::make_unsigned_t<T>;
  const U range = static_cast<U>(static_cast<U>(high) - static_cast<U>(low));
  return static_cast<T>(static_cast<U>(low) + word % range);
}

/// Values of truncated normal distributions are drawn in groups of so many, which have places of
/// their own in the stream, since how many words one takes is not known before.
template <typename T>
inline constexpr int kTruncatedGroup = std::is_same_v<T, double> ? 2 : 4;
inline constexpr double kTruncatedLimit = 2;

/// Single values of what `kDistribution` makes of blocks: those of one block from the last to the
/// first, as TensorFlow's rejection loops take them.
template <auto kDistribution>
class BackwardDraws {
 public:
  auto Next(Philox& stream) {
    if (left_ == 0) {
      values_ = kDistribution(stream.Next());
      left_ = values_.size();
    }
    return values_[--left_];
  }

 private:
  decltype(kDistribution(Philox::Block())) values_{};
  size_t left_ = 0;
};

/// Single words of a stream, in order, and what is made of them.
class WordDraws {
 public:
  explicit WordDraws(const Philox& stream) : stream_(stream) {}

  uint32_t Word() {
    if (used_ == block_.size()) {
      block_ = stream_.Next();
      used_ = 0;
    }
    return block_[used_++];
  }
  uint64_t TwoWords() {
    const uint64_t low = Word();
    return low | uint64_t{Word()} << 32;
  }
  float Float() { return UniformOf<float>(Word()); }
  double Double() {
    const uint32_t high = Word();
    return UniformOf(high, Word());
  }
  /// In [0, n), each as probable as the others: words that would favour the lowest are passed over.
  template <typename U>
  U Below(U n) {
    const auto draw = [this] { return sizeof(U) == 8 ? static_cast<U>(TwoWords()) : U(Word()); };
    if ((n & (n - 1)) == 0) return draw() & (n - 1);
    const U rest = static_cast<U>(~U{0} % n + 1);
    U value = draw();
    while (value < rest) value = draw();
    return value % n;
  }

 private:
  Philox stream_;
  Philox::Block block_{};
  size_t used_ = block_.size();
};

}  // namespace tenon
