// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

namespace tenon {

/// The logarithm of 0.
template <typename T>
constexpr T LogZero() {
  return -std::numeric_limits<T>::infinity();
}

/// log(e^a + e^b). The part that is added to the larger one is of float, as in TensorFlow.
template <typename T>
T LogSum(T a, T b) {
  if (a == LogZero<T>()) return b;
  if (b == LogZero<T>()) return a;
  const T high = a > b ? a : b, low = a > b ? b : a;
  return high + std::log1p(std::exp(static_cast<float>(low - high)));
}

}  // namespace tenon
