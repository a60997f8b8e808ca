// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/maths.h"
#include "ops/to_integer.h"

namespace tenon {

/// An element as one of another type, as Cast has it.
template <typename To, typename From>
TENON_HD To Convert(From from) {
  if constexpr (std::is_same_v<ComputeType<From>, float> && !std::is_same_v<From, float>) {
    return Convert<To>(static_cast<float>(from));
  } else if constexpr (std::is_same_v<ComputeType<To>, float> && !std::is_same_v<To, float>) {
    return To(Convert<float>(from));
  } else if constexpr (std::is_same_v<To, bool> && !kIsComplex<From>) {
    return from != From(0);
  } else if constexpr (kIsComplex<To> && !kIsComplex<From>) {
    return To(static_cast<typename To::value_type>(from));
  } else if constexpr (kIsComplex<From> && !kIsComplex<To>) {
    return Convert<To>(from.real());
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return ToInteger<To>(from);
  } else {
    return static_cast<To>(from);
  }
}

/// Bits of the mantissa of a `from` that a `to` has no room for; 0 unless both are floats.
inline int LostBits(DType from, DType to) {
  const auto mantissa = [](DType t) {
    if (t == DType::kBFloat16) return 7;
    if (t == DType::kHalf) return 10;
    if (t == DType::kFloat8E5M2) return 2;
    if (t == DType::kFloat8E4M3FN) return 3;
    return t == DType::kFloat ? 23 : 52;
  };
  const bool is_float8 = to == DType::kFloat8E5M2 || to == DType::kFloat8E4M3FN;
  return IsFloating(from) && (IsFloating(to) || is_float8) ? mantissa(from) - mantissa(to) : 0;
}

}  // namespace tenon
