// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

#include "core/dtype.h"
#include "ops/random/philox.h"

// What blocks of random words become, bit for bit as in TensorFlow: the order in which words are
// used, the single precision steps and glibc's logf, sinf and cosf all matter. Files with these
// must not be compiled with a vector library or relaxed floating point.

namespace tenon {

template <typename T>
T UniformOf(uint32_t x) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>((x & 0x7fffff) | 127u << 23) - 1.0f;
  } else if constexpr (std::is_same_v<T, Half>) {
    return Half(Half::FromBits(static_cast<uint16_t>((x & 0x3ff) | 15 << 10)) - 1.0f);
  } else {
    return BFloat16(BFloat16::FromBits(static_cast<uint16_t>((x & 0x7f) | 127 << 7)) - 1.0f);
  }
}

inline double UniformOf(uint32_t a, uint32_t b) {
  return std::bit_cast<double>(uint64_t{1023} << 52 | uint64_t{a & 0xfffff} << 32 | b) - 1.0;
}

/// The uniform values in [0, 1) that one block gives.
template <typename T>
auto Uniform(const Philox::Block& x) {
  if constexpr (std::is_same_v<T, double>) {
    return std::array{UniformOf(x[0], x[1]), UniformOf(x[2], x[3])};
  } else {
    return std::array{UniformOf<T>(x[0]), UniformOf<T>(x[1]), UniformOf<T>(x[2]),
                      UniformOf<T>(x[3])};
  }
}

/// Box and Muller's two normal values from each two uniform ones.
template <typename C>
auto Normal(const Philox::Block& x) {
  auto values = Uniform<C>(x);
  for (size_t i = 0; i < values.size(); i += 2) {
    const C u = std::max(values[i], C(1.0e-7));
    const C v = static_cast<C>(2 * std::numbers::pi * values[i + 1]);
    const C r = std::sqrt(C(-2) * std::log(u));
    values[i] = std::sin(v) * r;
    values[i + 1] = std::cos(v) * r;
  }
  return values;
}

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
