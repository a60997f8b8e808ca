// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "ops/math/vector_maths.h"
#include "ops/math/vector_reductions.h"
#include "ops/maths.h"

// The numerics that softmax and the losses share, for one row of C = float or double. Everything is
// relative to the row's maximum, so that no exponential overflows.

namespace tenon {

/// y[i] = exp(x[i] - shift); returns the sum. y may be x.
template <typename C>
C RowExp(const C* x, C shift, C* y, int64_t n) {
  TENON_SIMD
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] - shift;
  VectorExp(y, y, n);
  return static_cast<C>(VectorSum(y, n));
}

}  // namespace tenon
