// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/maths.h"

namespace tenon {

/// A float as an integer, rounded towards zero. Where the result does not fit, what TensorFlow
/// gives on x86: conversion to int32 (int64 for the wide types) gives its lowest value, and
/// narrower types take the low bits of that.
template <typename To, typename From>
TENON_HD To ToInteger(From x) {
  constexpr From kTwo31 = static_cast<From>(2147483648.0);
  constexpr From kTwo63 = static_cast<From>(9223372036854775808.0);
  if constexpr (std::is_same_v<To, uint64_t>) {
    const bool high = x >= kTwo63;
    const From y = high ? x - kTwo63 : x;
    if (!(y >= -kTwo63 && y < kTwo63)) return uint64_t{1} << 63;
    return static_cast<uint64_t>(static_cast<int64_t>(y)) + (high ? uint64_t{1} << 63 : 0);
  } else if constexpr (std::is_same_v<To, uint32_t>) {
    return x > -kTwo31 - 1 && x < 2 * kTwo31 ? static_cast<uint32_t>(static_cast<int64_t>(x))
                                             : uint32_t{1} << 31;
  } else if constexpr (sizeof(To) == 8) {
    return static_cast<To>(x >= -kTwo63 && x < kTwo63 ? static_cast<int64_t>(x)
                                                      : std::numeric_limits<int64_t>::min());
  } else {
    return static_cast<To>(x > -kTwo31 - 1 && x < kTwo31 ? static_cast<int32_t>(x)
                                                         : std::numeric_limits<int32_t>::min());
  }
}

}  // namespace tenon
