// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <complex>
#include <limits>

#include "ops/maths.h"

// What the ops that reduce make of elements, on every device.

namespace tenon {

/// Floating point sums are kept in double precision: their error then does not grow with length.
template <typename T>
using Wide =
    std::conditional_t<std::is_floating_point_v<ComputeType<T>>, double,
                       std::conditional_t<kIsComplex<T>, std::complex<double>, ComputeType<T>>>;

/// A reducer over T says what Acc results are kept in, where they start, how two of them, or one
/// and an element, become one, and what the result for n elements is, which is then made a T.
template <typename T, typename A>
struct Reducer {
  using Acc = A;
  TENON_HD static Acc Finish(Acc acc, int64_t) { return acc; }
};

template <typename T>
struct SumReducer : Reducer<T, Wide<T>> {
  TENON_HD static auto Start() { return Wide<T>(0); }
  TENON_HD static auto Merge(auto a, auto b) { return Plus(a, b); }
};

/// The sum of integers may be more than T holds when their mean is not.
template <typename T>
using MeanAcc =
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>, Wide<T>>;

template <typename T>
struct MeanReducer {
  using Acc = MeanAcc<T>;
  TENON_HD static Acc Start() { return Acc(0); }
  TENON_HD static Acc Merge(Acc a, Acc b) { return Plus(a, b); }
  TENON_HD static Acc Finish(Acc acc, int64_t n) {
    if ((std::is_integral_v<T> || kIsComplex<T>)&&n == 0) return Acc(0);
    if constexpr (std::is_integral_v<T>) return acc / static_cast<Acc>(n);
    return acc / Acc(static_cast<double>(n));
  }
};

template <typename T>
struct ProdReducer : Reducer<T, Wide<T>> {
  TENON_HD static auto Start() { return Wide<T>(1); }
  TENON_HD static auto Merge(auto a, auto b) { return Times(a, b); }
};

template <typename T>
TENON_HD T Infinity(int sign) {
  using Limits = std::numeric_limits<T>;
  if constexpr (Limits::has_infinity) return sign * Limits::infinity();
  return sign > 0 ? Limits::max() : Limits::lowest();
}

template <typename T>
struct MaxReducer : Reducer<T, ComputeType<T>> {
  TENON_HD static auto Start() { return Infinity<ComputeType<T>>(-1); }
  TENON_HD static auto Merge(auto a, auto b) { return Larger(a, b); }
};

template <typename T>
struct MinReducer : Reducer<T, ComputeType<T>> {
  TENON_HD static auto Start() { return Infinity<ComputeType<T>>(1); }
  TENON_HD static auto Merge(auto a, auto b) { return Smaller(a, b); }
};

/// The root of the sum of squares.
template <typename T>
struct NormReducer {
  using Acc = Wide<T>;
  TENON_HD static Acc Start() { return Acc(0); }
  TENON_HD static Acc Merge(Acc a, Acc b) { return Plus(a, b); }
  TENON_HD static Acc Of(Acc x) { return Times(x, Conjugate(x)); }
  TENON_HD static auto Finish(Acc acc, int64_t) {
    const auto root = std::sqrt(acc);
    // A sum of squares of integers that has wrapped around may be negative; then TensorFlow gives
    // what x86 makes of NaN, in 32 bits or more.
    if constexpr (std::is_integral_v<T>) {
      using Cast = std::conditional_t<(sizeof(T) < sizeof(int32_t)), int32_t, T>;
      if (std::isnan(root)) return static_cast<T>(std::numeric_limits<Cast>::min());
      return static_cast<T>(root);
    } else {
      return root;
    }
  }
};

/// The result for an element alone.
template <typename R>
TENON_HD typename R::Acc OfElement(auto x) {
  const auto element = static_cast<typename R::Acc>(x);
  if constexpr (requires { R::Of(element); }) return R::Of(element);
  return element;
}

/// `acc` and an element.
template <typename R>
TENON_HD typename R::Acc WithElement(typename R::Acc acc, auto x) {
  return R::Merge(acc, OfElement<R>(x));
}

}  // namespace tenon
