// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "core/base/status.h"
#include "core/tensor/dtype.h"

// The arithmetic that elementwise ops are written in: overloads for every element type, callable
// from CUDA. Integers wrap on overflow, as TensorFlow's do. 16-bit floats are computed in float,
// which the loops see to: these functions get float.

/// TENON_SIMD stands before a loop whose iterations do not depend on each other; reading and
/// writing the same element is fine (a kernel that works in place).
#if defined(__CUDACC__)
#define TENON_HD __host__ __device__
#define TENON_SIMD  // loops of the host are compiled elsewhere
// One expression for signed and unsigned integers may ask of the latter whether they are below 0.
#pragma nv_diag_suppress 186
#else
#define TENON_HD
#define TENON_SIMD _Pragma("omp simd")
#endif

namespace tenon {

/// The type that arithmetic on T is done in.
template <typename T>
using ComputeType =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

/// Dispatch as all of a kernel's work: the Status that `fn(T())` gives, OK if it gives none;
/// Unimplemented, naming the dtype, when no type of `types` is that of `type`.
template <typename Types, typename Fn>
Status DispatchStatus(DType type, Types types, Fn&& fn) {
  Status status;
  const bool known = Dispatch(type, types, [&]<typename T>(T zero) {
    if constexpr (std::is_void_v<decltype(fn(zero))>) fn(zero);
    if constexpr (!std::is_void_v<decltype(fn(zero))>) static_cast<void>(status = fn(zero));
  });
  return known ? status : Unimplemented("no kernel for elements of ", type);
}

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

/// An unsigned type in which arithmetic on T wraps without undefined behaviour, also after the
/// promotion of small integers to int.
template <typename T>
using WrapType = std::common_type_t<std::make_unsigned_t<T>, unsigned>;

/// What these functions compute with, unlike the functions of the same names that build graphs.
template <typename T>
concept Element = std::is_arithmetic_v<T> || kIsComplex<T>;

#define TENON_WRAPPING(NAME, OPERATOR)                                                         \
  template <Element T>                                                                         \
  TENON_HD T NAME(T x, T y) {                                                                  \
    if constexpr (std::is_integral_v<T>) {                                                     \
      return static_cast<T>(static_cast<WrapType<T>>(x) OPERATOR static_cast<WrapType<T>>(y)); \
    } else {                                                                                   \
      return x OPERATOR y;                                                                     \
    }                                                                                          \
  }
TENON_WRAPPING(Plus, +)
TENON_WRAPPING(Minus, -)
TENON_WRAPPING(Times, *)
#undef TENON_WRAPPING

template <Element T>
TENON_HD T Negative(T x) {
  if constexpr (std::is_integral_v<T>) return Minus(T(0), x);
  return -x;
}

template <Element T>
TENON_HD T Abs(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fabs(x);
  } else if constexpr (kIsComplex<T>) {
    return T(std::abs(x));
  } else {
    return x < T(0) ? Negative(x) : x;
  }
}

/// x / y; of integers rounded towards zero, where the lowest divided by -1 wraps instead of
/// trapping. Their y is not 0.
template <Element T>
TENON_HD T Quotient(T x, T y) {
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    if (y == T(-1)) return Negative(x);
  }
  return static_cast<T>(x / y);
}

/// The complex conjugate; a real number itself.
template <Element T>
TENON_HD T Conjugate(T x) {
  if constexpr (kIsComplex<T>) return std::conj(x);
  return x;
}

#define TENON_STD_FUNCTION(NAME, FUNCTION) \
  template <Element T>                     \
  TENON_HD T NAME(T x) {                   \
    return std::FUNCTION(x);               \
  }
TENON_STD_FUNCTION(Exp, exp)
TENON_STD_FUNCTION(Log, log)
TENON_STD_FUNCTION(Sqrt, sqrt)
TENON_STD_FUNCTION(Tanh, tanh)
TENON_STD_FUNCTION(Sin, sin)
TENON_STD_FUNCTION(Cos, cos)
TENON_STD_FUNCTION(Tan, tan)
TENON_STD_FUNCTION(Asin, asin)
TENON_STD_FUNCTION(Acos, acos)
TENON_STD_FUNCTION(Atan, atan)
TENON_STD_FUNCTION(Sinh, sinh)
TENON_STD_FUNCTION(Cosh, cosh)
TENON_STD_FUNCTION(Asinh, asinh)
TENON_STD_FUNCTION(Acosh, acosh)
TENON_STD_FUNCTION(Atanh, atanh)
TENON_STD_FUNCTION(Erf, erf)
TENON_STD_FUNCTION(Erfc, erfc)
TENON_STD_FUNCTION(Floor, floor)
TENON_STD_FUNCTION(Ceil, ceil)
TENON_STD_FUNCTION(Trunc, trunc)
#undef TENON_STD_FUNCTION

/// exp(x) - 1, accurate near 0.
template <Element T>
TENON_HD T Expm1(T x) {
  if constexpr (kIsComplex<T>) {
    using Real = typename T::value_type;
    // e^(a+bi) - 1 = (expm1(a) cos b - 2 sin^2(b/2)) + e^a sin b i, which does not cancel.
    const Real half_sine = std::sin(x.imag() / 2);
    return T(std::expm1(x.real()) * std::cos(x.imag()) - 2 * half_sine * half_sine,
             std::exp(x.real()) * std::sin(x.imag()));
  } else {
    return std::expm1(x);
  }
}

/// log(1 + x), accurate near 0.
template <Element T>
TENON_HD T Log1p(T x) {
  if constexpr (kIsComplex<T>) {
    using Real = typename T::value_type;
    // |1+x|^2 - 1 = a (2 + a) + b^2
    const Real a = x.real(), b = x.imag();
    return T(std::log1p(a * (2 + a) + b * b) / 2, std::atan2(b, 1 + a));
  } else {
    return std::log1p(x);
  }
}

/// To the nearest integer, halves to even.
template <Element T>
TENON_HD T RoundToEven(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::rint(x);
  if constexpr (kIsComplex<T>) return T(std::rint(x.real()), std::rint(x.imag()));
  return x;
}

template <Element T>
TENON_HD bool IsNan(T x) {
  return x != x;
}

/// The larger of two; NaN if either is.
template <Element T>
TENON_HD T Larger(T x, T y) {
  return x < y || IsNan(y) ? y : x;
}

/// The smaller of two; NaN if either is.
template <Element T>
TENON_HD T Smaller(T x, T y) {
  return y < x || IsNan(y) ? y : x;
}

}  // namespace tenon
