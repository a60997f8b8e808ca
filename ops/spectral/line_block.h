// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <cstdint>

#include "core/memory/counted_memory.h"

namespace tenon {

/// Transforms of several lines of one length side by side, as many as a vector register has
/// numbers: for lines so short that a library's calls take longer than the sums. T is float or
/// double.
template <typename T>
class LineBlock {
 public:
  static constexpr int64_t kLines = 64 / sizeof(T);
  /// Element j of the lines: kLines real parts from here on, and as many imaginary ones.
  static constexpr int64_t At(int64_t j) { return j * 2 * kLines; }

  /// Whether lines of n elements are transformed so: the prime factors of n are small, and what
  /// they take together fits into a cache.
  static bool Takes(int64_t n);
  /// A transform of lines of n elements; Takes(n) must be true.
  explicit LineBlock(int64_t n);

  /// The transforms, not divided by n: in `lines` or in `other`, whichever is returned. Both have
  /// At(n) numbers. May be called by several threads.
  T* Run(T* lines, T* other, bool inverse) const;

 private:
  /// One step, for a factor `radix` of what is left of n, which is radix * parts: of each of the
  /// `stride` transforms that the steps before have begun.
  struct Step {
    int64_t radix, parts, stride;
    CountedVector<std::complex<T>> turns;  // radix a part
    CountedVector<std::complex<T>> roots;  // of unity, radix of them
  };

  CountedVector<Step> steps_;
};

}  // namespace tenon
