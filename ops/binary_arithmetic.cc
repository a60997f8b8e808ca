// SPDX-License-Identifier: Apache-2.0
#include "ops/composition.h"
#include "ops/elementwise.h"
#include "ops/math_ops.h"
#include "ops/register.h"

namespace tenon {
namespace {

// Reading `x` before a scope is known to be good would touch an empty Output.
#define TENON_UNLESS_FAILED(s) \
  if (!(s).ok()) return

struct AddV2Op {
  static constexpr std::string_view kName = "AddV2";
  using Types = NumericTypes;
  template <typename T>
  TENON_HD static T Apply(const T& x, const T& y) {
    return Plus(x, y);
  }
  static void Grad(const Scope&, Output, Output, Output, Output dz, Output* dx, Output* dy) {
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
    return Plus(x, y);
  }
};

struct SubOp {
  static constexpr std::string_view kName = "Sub";
  using Types = NumericTypes;
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    return Minus(x, y);
  }
  static void Grad(const Scope& s, Output, Output, Output, Output dz, Output* dx, Output* dy) {
    *dx = dz;
    *dy = Neg(s, dz);
  }
};

struct MulOp {
  static constexpr std::string_view kName = "Mul";
  using Types = NumericTypes;
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    return Times(x, y);
  }
  static void Grad(const Scope& s, Output x, Output y, Output, Output dz, Output* dx, Output* dy) {
    *dx = Mul(s, dz, ConjugateOf(s, y));
    *dy = Mul(s, dz, ConjugateOf(s, x));
  }
};

struct MaximumOp {
  static constexpr std::string_view kName = "Maximum";
  using Types = RealTypes;
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    return x < y || IsNan(y) ? y : x;  // NaN if either is
  }
  static void Grad(const Scope& s, Output x, Output y, Output, Output dz, Output* dx, Output* dy) {
    // Of equals, x gets the gradient.
    Choose(s, GreaterEqual(s, x, y), dz, dx, dy);
  }
  static void Choose(const Scope& s, Output x_wins, Output dz, Output* dx, Output* dy) {
    TENON_UNLESS_FAILED(s);
    const Output zero = ScalarOf(s, dz.dtype(), 0);
    *dx = SelectV2(s, x_wins, dz, zero);
    *dy = SelectV2(s, x_wins, zero, dz);
  }
};

struct MinimumOp {
  static constexpr std::string_view kName = "Minimum";
  using Types = RealTypes;
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    return y < x || IsNan(y) ? y : x;
  }
  static void Grad(const Scope& s, Output x, Output y, Output, Output dz, Output* dx, Output* dy) {
    MaximumOp::Choose(s, LessEqual(s, x, y), dz, dx, dy);
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
  static void Grad(const Scope& s, Output x, Output y, Output, Output dz, Output* dx, Output* dy) {
    *dx = Mul(s, Scaled(s, dz, 2), Sub(s, x, y));
    *dy = Neg(s, *dx);
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
  static void Grad(const Scope& s, Output x, Output y, Output z, Output dz, Output* dx,
                   Output* dy) {
    TENON_UNLESS_FAILED(s);
    const Output cx = ConjugateOf(s, x), cy = ConjugateOf(s, y), cz = ConjugateOf(s, z);
    const Output one = ScalarOf(s, x.dtype(), 1), zero = ScalarOf(s, x.dtype(), 0);
    *dx = Mul(s, Mul(s, dz, cy), Pow(s, cx, Sub(s, cy, one)));
    // The logarithm of what it has none of counts as 0, and is not computed: 0 * NaN is NaN.
    const Output has_log =
        s.ok() && IsComplex(x.dtype()) ? NotEqual(s, cx, zero) : Greater(s, cx, zero);
    const Output log = SelectV2(s, has_log, Log(s, SelectV2(s, has_log, cx, one)), zero);
    *dy = Mul(s, Mul(s, dz, cz), log);
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
