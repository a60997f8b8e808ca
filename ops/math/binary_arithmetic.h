// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "ops/elementwise.h"

namespace tenon::elementwise {

struct AddV2Op : Elementwise<"AddV2", NumericTypes> {
  TENON_HD static auto Apply(const auto& x, const auto& y) { return Plus(x, y); }
  static GradientPair Grad(Output, Output, Output, Output dz);
};

struct AddOp : Elementwise<"Add", SignedComplexTypes, TypeList<uint8_t, TString>> {
  static constexpr auto Grad = &AddV2Op::Grad;
  TENON_HD static auto Apply(auto x, auto y) { return Plus(x, y); }
  static TString Apply(const TString& x, const TString& y) { return x + y; }
};

struct SubOp : Elementwise<"Sub", NumericTypes> {
  TENON_HD static auto Apply(auto x, auto y) { return Minus(x, y); }
  static GradientPair Grad(Output, Output, Output, Output dz);
};

struct MulOp : Elementwise<"Mul", NumericTypes> {
  TENON_HD static auto Apply(auto x, auto y) { return Times(x, y); }
  static GradientPair Grad(Output x, Output y, Output, Output dz);
};

struct MaximumOp : Elementwise<"Maximum", RealTypes> {
  TENON_HD static auto Apply(auto x, auto y) { return Larger(x, y); }
  static GradientPair Grad(Output x, Output y, Output, Output dz);
  static GradientPair Choose(Output x_wins, Output dz);
};

struct MinimumOp : Elementwise<"Minimum", RealTypes> {
  TENON_HD static auto Apply(auto x, auto y) { return Smaller(x, y); }
  static GradientPair Grad(Output x, Output y, Output, Output dz);
};

struct SquaredDifferenceOp
    : Elementwise<"SquaredDifference", FloatComplexTypes, TypeList<int32_t, int64_t>> {
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    const T d = Minus(x, y);
    return Times(d, Conjugate(d));
  }
  static GradientPair Grad(Output x, Output y, Output, Output dz);
};

struct PowOp : Elementwise<"Pow", SignedComplexTypes> {
  static constexpr std::string_view kError = "Integers to negative integer powers are not allowed";
  static constexpr Domain kDomain{0.3, 2};
  static constexpr double kCost = 10;
  template <typename T>
  TENON_HD static bool Valid(T, T y) {
    if constexpr (std::is_integral_v<T>) return y >= T(0);
    return true;
  }
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      T result = 1;
      for (; y > 0; y >>= 1, x = Times(x, x)) {
        if (y & 1) result = Times(result, x);
      }
      return result;
    }
    return std::pow(x, y);
  }
  static GradientPair Grad(Output x, Output y, Output z, Output dz);
};

struct Atan2Op : Elementwise<"Atan2", FloatTypes> {
  static constexpr double kCost = 10;
  static constexpr Domain kDomain{0.3, 2};
  TENON_HD static auto Apply(auto y, auto x) { return std::atan2(y, x); }
  static GradientPair Grad(Output y, Output x, Output, Output dz);
};

struct NextAfterOp : Elementwise<"NextAfter", TypeList<float, double>> {
  TENON_HD static auto Apply(auto x, auto y) { return std::nextafter(x, y); }
  static GradientPair Grad(Output, Output, Output, Output dz);
};

struct LogicalAndOp : Elementwise<"LogicalAnd", TypeList<bool>> {
  TENON_HD static bool Apply(bool x, bool y) { return x && y; }
};

struct LogicalOrOp : Elementwise<"LogicalOr", TypeList<bool>> {
  TENON_HD static bool Apply(bool x, bool y) { return x || y; }
};

using BinaryArithmeticOps =
    TypeList<AddOp, AddV2Op, SubOp, MulOp, MaximumOp, MinimumOp, SquaredDifferenceOp, PowOp,
             Atan2Op, NextAfterOp, LogicalAndOp, LogicalOrOp>;

}  // namespace tenon::elementwise
