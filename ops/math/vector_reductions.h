// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

// Sums and extremes of many numbers, in registers: where a loop over a few lanes is written out,
// compilers take it apart and forget vectors.

namespace tenon {

/// A vector of eight numbers, which the processor's may hold several or parts of.
template <typename T>
struct Eight {
  static constexpr int kLanes = 8;
  typedef T Type __attribute__((vector_size(kLanes * sizeof(T))));  // NOLINT
};

namespace vector_internal {
inline constexpr int kLanes = Eight<float>::kLanes;
/// Vectors that are on their way at once.
inline constexpr int kVectors = 4;
}  // namespace vector_internal

/// The sum of n floats or doubles, kept in double, in an order that n alone decides.
template <typename T>
double VectorSum(const T* x, int64_t n) {
  using vector_internal::kLanes, vector_internal::kVectors;
  using Vector = typename Eight<T>::Type;
  using Sums = typename Eight<double>::Type;
  double sum = 0;
  int64_t i = 0;
  if (n >= kLanes) {
    Sums sums[kVectors] = {};
    const auto add = [&sums, x](int v, int64_t at) {
      Vector values;
      std::memcpy(&values, x + at, sizeof(values));
      sums[v] += __builtin_convertvector(values, Sums);
    };
    for (; i + kVectors * kLanes <= n; i += kVectors * kLanes) {
      add(0, i);
      add(1, i + kLanes);
      add(2, i + 2 * kLanes);
      add(3, i + 3 * kLanes);
    }
    for (; i + kLanes <= n; i += kLanes) add(0, i);
    const Sums all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    sum = ((all[0] + all[4]) + (all[2] + all[6])) + ((all[1] + all[5]) + (all[3] + all[7]));
  }
  for (; i < n; ++i) sum += static_cast<double>(x[i]);
  return sum;
}

namespace vector_internal {
/// The largest of n >= 1 numbers, or the smallest; NaN when there is one.
template <bool kLargest, typename T>
T Extreme(const T* x, int64_t n) {
  using Vector = typename Eight<T>::Type;
  const auto further = [](T a, T b) { return (kLargest ? b > a : b < a) || b != b ? b : a; };
  T most = x[0];
  int64_t i = 1;
  if (n >= kLanes) {
    Vector first;
    std::memcpy(&first, x, sizeof(first));
    Vector extremes[kVectors] = {first, first, first, first};
    const auto widen = [](Vector& a, const Vector& b) {
      a = ((kLargest ? b > a : b < a) | (b != b)) ? b : a;
    };
    const auto merge = [&](int v, int64_t at) {
      Vector values;
      std::memcpy(&values, x + at, sizeof(values));
      widen(extremes[v], values);
    };
    for (i = 0; i + kVectors * kLanes <= n; i += kVectors * kLanes) {
      merge(0, i);
      merge(1, i + kLanes);
      merge(2, i + 2 * kLanes);
      merge(3, i + 3 * kLanes);
    }
    for (; i + kLanes <= n; i += kLanes) merge(0, i);
    widen(extremes[0], extremes[1]);
    widen(extremes[2], extremes[3]);
    widen(extremes[0], extremes[2]);
    Vector& all = extremes[0];
    widen(all, __builtin_shufflevector(all, all, 4, 5, 6, 7, 0, 1, 2, 3));
    widen(all, __builtin_shufflevector(all, all, 2, 3, 0, 1, 6, 7, 4, 5));
    most = further(all[0], all[1]);
  }
  for (; i < n; ++i) most = further(most, x[i]);
  return most;
}
}  // namespace vector_internal

/// The largest of n >= 1 floats or doubles; NaN when there is one.
template <typename T>
T VectorMax(const T* x, int64_t n) {
  return vector_internal::Extreme<true>(x, n);
}
/// The smallest.
template <typename T>
T VectorMin(const T* x, int64_t n) {
  return vector_internal::Extreme<false>(x, n);
}

}  // namespace tenon
