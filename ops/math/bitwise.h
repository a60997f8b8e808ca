// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <climits>

#include "ops/elementwise.h"

namespace tenon::elementwise {

struct BitwiseAndOp : Elementwise<"BitwiseAnd", IntTypes> {
  TENON_HD static auto Apply(auto x, auto y) { return x & y; }
};

struct BitwiseOrOp : Elementwise<"BitwiseOr", IntTypes> {
  TENON_HD static auto Apply(auto x, auto y) { return x | y; }
};

struct BitwiseXorOp : Elementwise<"BitwiseXor", IntTypes> {
  TENON_HD static auto Apply(auto x, auto y) { return x ^ y; }
};

struct InvertOp : Elementwise<"Invert", IntTypes> {
  TENON_HD static auto Apply(auto x) { return ~x; }
};

struct PopulationCountOp : Elementwise<"PopulationCount", IntTypes> {
  template <typename T>
  using Result = uint8_t;
  template <typename T>
  TENON_HD static auto Apply(T x) {
    const auto bits = static_cast<std::make_unsigned_t<T>>(x);
#ifdef __CUDA_ARCH__
    // In code for GPUs std::popcount counts the lower 32 bits alone.
    return __popcll(bits);
#else
    return std::popcount(bits);
#endif
  }
};

/// How far to shift a T: y within what is defined.
template <typename T>
TENON_HD int Distance(T y) {
  constexpr int kMost = static_cast<int>(sizeof(T)) * CHAR_BIT - 1;
  return y < T(0) ? 0 : y > T(kMost) ? kMost : static_cast<int>(y);
}

struct LeftShiftOp : Elementwise<"LeftShift", IntTypes> {
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    return static_cast<T>(static_cast<WrapType<T>>(x) << Distance(y));
  }
};

struct RightShiftOp : Elementwise<"RightShift", IntTypes> {
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    return static_cast<T>(x >> Distance(y));
  }
};

using BitwiseBinaryOps =
    TypeList<BitwiseAndOp, BitwiseOrOp, BitwiseXorOp, LeftShiftOp, RightShiftOp>;
using BitwiseUnaryOps = TypeList<InvertOp, PopulationCountOp>;

}  // namespace tenon::elementwise
