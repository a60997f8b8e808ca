// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/elementwise.h"

namespace tenon::elementwise {

struct AbsOp : Elementwise<"Abs", SignedTypes> {
  static constexpr Domain kDomain{0.3, 2};
  TENON_HD static auto Apply(auto x) { return Abs(x); }
  static Output Grad(Output x, Output, Output dy);
};

struct NegOp : Elementwise<"Neg", SignedComplexTypes> {
  TENON_HD static auto Apply(auto x) { return Negative(x); }
  static Output Grad(Output, Output, Output dy);
};

struct SignOp : Elementwise<"Sign", SignedComplexTypes> {
  static constexpr Domain kDomain{0.3, 2};
  template <typename T>
  TENON_HD static T Apply(T x) {
    if constexpr (kIsComplex<T>) {
      return x == T(0) ? T(0) : x / std::abs(x);
    } else if constexpr (std::is_floating_point_v<T>) {
      // NaN stays; of either zero the sign is +0.
      return x > T(0) ? T(1) : x < T(0) ? T(-1) : x == T(0) ? T(0) : x;
    } else {
      return static_cast<T>((x > T(0)) - (x < T(0)));
    }
  }
  static Output Grad(Output x, Output, Output);
};

struct SquareOp : Elementwise<"Square", NumericTypes> {
  TENON_HD static auto Apply(auto x) { return Times(x, x); }
  static Output Grad(Output x, Output, Output dy);
};

struct SqrtOp : Elementwise<"Sqrt", FloatComplexTypes> {
  static constexpr Domain kDomain{0.3, 2};
  TENON_HD static auto Apply(auto x) { return Sqrt(x); }
  static Output Grad(Output, Output y, Output dy);
};

struct RsqrtOp : Elementwise<"Rsqrt", FloatComplexTypes> {
  static constexpr Domain kDomain{0.3, 2};
  TENON_HD static auto Apply(auto x) { return decltype(x)(1) / Sqrt(x); }
  static Output Grad(Output, Output y, Output dy);
};

struct ReciprocalOp : Elementwise<"Reciprocal", SignedComplexTypes> {
  static constexpr Domain kDomain{0.3, 2};
  template <typename T>
  TENON_HD static T Apply(T x) {
    return std::is_integral_v<T> && x == T(0) ? T(0) : T(1) / x;
  }
  static Output Grad(Output, Output y, Output dy);
};

struct InvOp : ReciprocalOp {
  static constexpr std::string_view kName = "Inv";
  static Output Grad(Output, Output y, Output dy);
};

struct ConjOp : Elementwise<"Conj", ComplexTypes> {
  TENON_HD static auto Apply(auto x) { return Conjugate(x); }
  static Output Grad(Output, Output, Output dy);
};

// The steps below have gradient 0 wherever they have one, which TensorFlow states as none at all.

struct FloorOp : Elementwise<"Floor", FloatTypes> {
  TENON_HD static auto Apply(auto x) { return Floor(x); }
};

struct CeilOp : Elementwise<"Ceil", FloatTypes> {
  TENON_HD static auto Apply(auto x) { return Ceil(x); }
};

struct RoundOp : Elementwise<"Round", SignedComplexTypes> {
  TENON_HD static auto Apply(auto x) { return RoundToEven(x); }
};

struct RintOp : Elementwise<"Rint", FloatTypes> {
  TENON_HD static auto Apply(auto x) { return RoundToEven(x); }
};

struct IsNanOp : Elementwise<"IsNan", FloatTypes> {
  TENON_HD static bool Apply(auto x) { return IsNan(x); }
};

// Infinity minus itself is NaN.

struct IsInfOp : Elementwise<"IsInf", FloatTypes> {
  TENON_HD static bool Apply(auto x) { return !IsNan(x) && IsNan(x - x); }
};

struct IsFiniteOp : Elementwise<"IsFinite", FloatTypes> {
  TENON_HD static bool Apply(auto x) { return !IsNan(x - x); }
};

struct LogicalNotOp : Elementwise<"LogicalNot", TypeList<bool>> {
  TENON_HD static bool Apply(bool x) { return !x; }
};

struct ZerosLikeOp : Elementwise<"ZerosLike", PlainTypes, TypeList<TString>> {
  template <typename T>
  TENON_HD static T Apply(const T&) {
    return T{};
  }
};

struct OnesLikeOp : Elementwise<"OnesLike", PlainTypes> {
  TENON_HD static auto Apply(auto x) { return decltype(x)(1); }
};

using UnaryArithmeticOps = TypeList<AbsOp, NegOp, SignOp, SquareOp, SqrtOp, RsqrtOp, ReciprocalOp,
                                    InvOp, ConjOp, FloorOp, CeilOp, RoundOp, RintOp, IsNanOp,
                                    IsInfOp, IsFiniteOp, LogicalNotOp, ZerosLikeOp, OnesLikeOp>;

}  // namespace tenon::elementwise
