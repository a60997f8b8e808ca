// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "ops/elementwise.h"

namespace tenon::elementwise {

/// What Quotient leaves, with the sign of x.
template <typename T>
TENON_HD T Remainder(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    if (std::is_signed_v<T> && y == T(-1)) return T(0);
    return static_cast<T>(x % y);
  } else {
    return std::fmod(x, y);
  }
}

template <OpName kOpName, typename SomeTypes, typename MoreTypes = TypeList<>>
struct Division : Elementwise<kOpName, SomeTypes, MoreTypes> {
  static constexpr double kCost = 1;
  static constexpr std::string_view kError = "Integer division by zero";
  static constexpr Domain kDomain{0.6, 1.9};
  template <typename T>
  TENON_HD static bool Valid(T, T y) {
    return !std::is_integral_v<T> || y != T(0);
  }
};

struct DivOp : Division<"Div", NumericTypes> {
  TENON_HD static auto Apply(auto x, auto y) { return Quotient(x, y); }
  static GradientPair Grad(Output x, Output y, Output, Output dz);
};

struct RealDivOp : DivOp {
  static constexpr std::string_view kName = "RealDiv";
};

struct FloorDivOp : Division<"FloorDiv", RealTypes> {
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      const bool rounds_up = (x < T(0)) != (y < T(0)) && Remainder(x, y) != T(0);
      return static_cast<T>(Quotient(x, y) - (rounds_up ? 1 : 0));
    }
    return Floor(x / y);
  }
};

struct TruncateDivOp : Division<"TruncateDiv", RealTypes> {
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    if constexpr (std::is_integral_v<T>) return Quotient(x, y);
    return Trunc(x / y);
  }
};

struct FloorModOp : Division<"FloorMod", RealTypes> {
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    const T r = Remainder(x, y);
    return r != T(0) && (r < T(0)) != (y < T(0)) ? static_cast<T>(r + y) : r;
  }
  static GradientPair Grad(Output x, Output y, Output, Output dz);
};

struct TruncateModOp : Division<"TruncateMod", FloatTypes, TypeList<int32_t, int64_t>> {
  TENON_HD static auto Apply(auto x, auto y) { return Remainder(x, y); }
};

struct ModOp : TruncateModOp {
  static constexpr std::string_view kName = "Mod";
};

struct DivNoNanOp : Elementwise<"DivNoNan", FloatComplexTypes> {
  static constexpr Domain kDomain{0.5, 2};
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    return y == T(0) ? T(0) : x / y;
  }
  static GradientPair Grad(Output x, Output y, Output, Output dz);
};

struct XdivyOp : Elementwise<"Xdivy", FloatComplexTypes> {
  static constexpr Domain kDomain{0.5, 2};
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    return x == T(0) ? T(0) : x / y;
  }
  static GradientPair Grad(Output x, Output y, Output, Output dz);
};

// The next ops make 0 of x = 0 whatever y is, and their gradients by x count 0 as no dependence.
// The logarithm of a 16-bit float is rounded to one, as the product of two ops would have it.

struct XlogyOp : Elementwise<"Xlogy", FloatComplexTypes> {
  static constexpr double kCost = 4;
  static constexpr Domain kDomain{0.5, 2};
  TENON_HD static auto OfSecond(auto y) { return Log(y); }
  template <typename T>
  TENON_HD static T Apply(T x, T log_y) {
    return x == T(0) ? T(0) : x * log_y;
  }
  static GradientPair Grad(Output x, Output y, Output, Output dz);
};

struct Xlog1pyOp : Elementwise<"Xlog1py", FloatComplexTypes> {
  static constexpr double kCost = 4;
  static constexpr Domain kDomain{0.5, 2};
  TENON_HD static auto OfSecond(auto y) { return Log1p(y); }
  template <typename T>
  TENON_HD static T Apply(T x, T log1p_y) {
    return x == T(0) ? T(0) : x * log1p_y;
  }
  static GradientPair Grad(Output x, Output y, Output, Output dz);
};

struct MulNoNanOp : Elementwise<"MulNoNan", FloatComplexTypes> {
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    return y == T(0) ? T(0) : x * y;
  }
  static GradientPair Grad(Output x, Output y, Output, Output dz);
};

using DivisionOps = TypeList<DivOp, RealDivOp, FloorDivOp, TruncateDivOp, FloorModOp, TruncateModOp,
                             ModOp, DivNoNanOp, XdivyOp, XlogyOp, Xlog1pyOp, MulNoNanOp>;

}  // namespace tenon::elementwise
