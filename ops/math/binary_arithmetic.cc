// SPDX-License-Identifier: Apache-2.0
#include "ops/composition.h"
#include "ops/elementwise.h"
#include "ops/math/register.h"

namespace tenon {
namespace {

struct AddV2Op {
  static constexpr std::string_view kName = "AddV2";
  using Types = NumericTypes;
  template <typename T>
  TENON_HD static T Apply(const T& x, const T& y) {
    return Plus(x, y);
  }
  static void Grad(Output, Output, Output, Output dz, Output* dx, Output* dy) {
    *dx = dz;
    *dy = dz;
  }
};

struct AddOp {
  static constexpr std::string_view kName = "Add";
  static constexpr auto Grad = &AddV2Op::Grad;
  using Types = decltype(ConcatTypes(SignedComplexTypes(), TypeList<uint8_t, TString>()));
  template <typename T>
  TENON_HD static T Apply(const T& x, const T& y) {
    if constexpr (std::is_same_v<T, TString>) {
      return x + y;
    } else {
      return Plus(x, y);
    }
  }
};

struct SubOp {
  static constexpr std::string_view kName = "Sub";
  using Types = NumericTypes;
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    return Minus(x, y);
  }
  static void Grad(Output, Output, Output, Output dz, Output* dx, Output* dy) {
    *dx = dz;
    *dy = Neg(dz);
  }
};

struct MulOp {
  static constexpr std::string_view kName = "Mul";
  using Types = NumericTypes;
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    return Times(x, y);
  }
  static void Grad(Output x, Output y, Output, Output dz, Output* dx, Output* dy) {
    *dx = Mul(dz, ConjugateOf(y));
    *dy = Mul(dz, ConjugateOf(x));
  }
};

struct MaximumOp {
  static constexpr std::string_view kName = "Maximum";
  using Types = RealTypes;
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    return x < y || IsNan(y) ? y : x;  // NaN if either is
  }
  static void Grad(Output x, Output y, Output, Output dz, Output* dx, Output* dy) {
    // Of equals, x gets the gradient.
    Choose(GreaterEqual(x, y), dz, dx, dy);
  }
  static void Choose(Output x_wins, Output dz, Output* dx, Output* dy) {
    const Output zero = Const(0, {.dtype = dz.dtype()});
    *dx = SelectV2(x_wins, dz, zero);
    *dy = SelectV2(x_wins, zero, dz);
  }
};

struct MinimumOp {
  static constexpr std::string_view kName = "Minimum";
  using Types = RealTypes;
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    return y < x || IsNan(y) ? y : x;
  }
  static void Grad(Output x, Output y, Output, Output dz, Output* dx, Output* dy) {
    MaximumOp::Choose(LessEqual(x, y), dz, dx, dy);
  }
};

struct SquaredDifferenceOp {
  static constexpr std::string_view kName = "SquaredDifference";
  using Types = decltype(ConcatTypes(FloatComplexTypes(), TypeList<int32_t, int64_t>()));
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    const T d = Minus(x, y);
    return Times(d, Conjugate(d));
  }
  static void Grad(Output x, Output y, Output, Output dz, Output* dx, Output* dy) {
    *dx = Mul(Scaled(dz, 2), Sub(x, y));
    *dy = Neg(*dx);
  }
};

struct PowOp {
  static constexpr std::string_view kName = "Pow";
  static constexpr std::string_view kError = "Integers to negative integer powers are not allowed";
  static constexpr Domain kDomain{0.3, 2};
  static constexpr double kCost = 10;
  using Types = SignedComplexTypes;
  template <typename T>
  TENON_HD static bool Valid(T, T y) {
    if constexpr (std::is_integral_v<T>) {
      return y >= T(0);
    } else {
      return true;
    }
  }
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      T result = 1;
      for (; y > 0; y >>= 1, x = Times(x, x)) {
        if (y & 1) result = Times(result, x);
      }
      return result;
    } else {
      return std::pow(x, y);
    }
  }
  static void Grad(Output x, Output y, Output z, Output dz, Output* dx, Output* dy) {
    const Output cx = ConjugateOf(x), cy = ConjugateOf(y), cz = ConjugateOf(z);
    const Output one = Const(1, {.dtype = x.dtype()}), zero = Const(0, {.dtype = x.dtype()});
    *dx = Mul(Mul(dz, cy), Pow(cx, Sub(cy, one)));
    // The logarithm of what it has none of counts as 0, and is not computed: 0 * NaN is NaN.
    const Output has_log = IsComplex(x.dtype()) ? NotEqual(cx, zero) : Greater(cx, zero);
    const Output log = SelectV2(has_log, Log(SelectV2(has_log, cx, one)), zero);
    *dy = Mul(Mul(dz, cz), log);
  }
};

struct LogicalAndOp {
  static constexpr std::string_view kName = "LogicalAnd";
  static constexpr bool kNotDifferentiable = true;
  using Types = TypeList<bool>;
  TENON_HD static bool Apply(bool x, bool y) { return x && y; }
};

struct LogicalOrOp {
  static constexpr std::string_view kName = "LogicalOr";
  static constexpr bool kNotDifferentiable = true;
  using Types = TypeList<bool>;
  TENON_HD static bool Apply(bool x, bool y) { return x || y; }
};

}  // namespace

void RegisterBinaryArithmetic(OpRegistry& ops) {
  RegisterBinaryList(ops, TypeList<AddOp, AddV2Op, SubOp, MulOp, MaximumOp, MinimumOp,
                                   SquaredDifferenceOp, PowOp, LogicalAndOp, LogicalOrOp>());
}

}  // namespace tenon
