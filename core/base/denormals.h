// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

namespace tenon {

/// While it lives, floats and doubles too small for a normal exponent are zeros to the arithmetic
/// of the calling thread, and of those that share its loops: as in TensorFlow's kernels, and
/// because processors take a hundred times as long for them. Held by threads that run kernels.
class FlushDenormals {
 public:
  FlushDenormals() : before_(_mm_getcsr()) {
    if ((before_ & kFlags) != kFlags) _mm_setcsr(before_ | kFlags);
  }
  ~FlushDenormals() {
    if ((before_ & kFlags) != kFlags) _mm_setcsr(before_);
  }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  static constexpr unsigned kFlags = 0x8040;  // of results and of arguments
  const unsigned before_;
};

}  // namespace tenon
