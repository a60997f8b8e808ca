// SPDX-License-Identifier: Apache-2.0
#include "ops/composition.h"
#include "ops/elementwise.h"
#include "ops/math/register.h"

namespace tenon {
namespace {

/// x / y of integers, rounded towards zero, where the lowest divided by -1 wraps instead of
/// trapping. y is not 0.
template <typename T>
TENON_HD T Quotient(T x, T y) {
  if constexpr (std::is_signed_v<T>) {
    if (y == T(-1)) return Negative(x);
  }
  return static_cast<T>(x / y);
}

template <typename T>
TENON_HD T Remainder(T x, T y) {
  if constexpr (std::is_signed_v<T>) {
    if (y == T(-1)) return T(0);
  }
  return static_cast<T>(x % y);
}

struct DivisionOp {
  static constexpr std::string_view kError = "Integer division by zero";
  static constexpr Domain kDomain{0.6, 1.9};
  using Types = NumericTypes;
  template <typename T>
  TENON_HD static bool Valid(T, T y) {
    if constexpr (std::is_integral_v<T>) {
      return y != T(0);
    } else {
      return true;
    }
  }
};

struct DivOp : DivisionOp {
  static constexpr std::string_view kName = "Div";
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      return Quotient(x, y);
    } else {
      return x / y;
    }
  }
  static void Grad(Output x, Output y, Output, Output dz, Output* dx, Output* dy) {
    const Output cx = ConjugateOf(x), cy = ConjugateOf(y);
    *dx = RealDiv(dz, cy);
    *dy = Mul(dz, RealDiv(RealDiv(Neg(cx), cy), cy));
  }
};

struct RealDivOp : DivOp {
  static constexpr std::string_view kName = "RealDiv";
};

struct FloorDivOp : DivisionOp {
  static constexpr std::string_view kName = "FloorDiv";
  static constexpr bool kNotDifferentiable = true;
  using Types = RealTypes;
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      const bool rounds_up = (x < T(0)) != (y < T(0)) && Remainder(x, y) != T(0);
      return static_cast<T>(Quotient(x, y) - (rounds_up ? 1 : 0));
    } else {
      return Floor(x / y);
    }
  }
};

struct TruncateDivOp : DivisionOp {
  static constexpr std::string_view kName = "TruncateDiv";
  static constexpr bool kNotDifferentiable = true;
  using Types = RealTypes;
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      return Quotient(x, y);
    } else {
      return Trunc(x / y);
    }
  }
};

struct FloorModOp : DivisionOp {
  static constexpr std::string_view kName = "FloorMod";
  using Types = RealTypes;
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      const T r = Remainder(x, y);
      return r != T(0) && (r < T(0)) != (y < T(0)) ? static_cast<T>(r + y) : r;
    } else {
      const T r = std::fmod(x, y);
      return r != T(0) && (r < T(0)) != (y < T(0)) ? r + y : r;
    }
  }
  static void Grad(Output x, Output y, Output, Output dz, Output* dx, Output* dy) {
    *dx = dz;
    *dy = Mul(dz, Neg(FloorDiv(x, y)));
  }
};

struct TruncateModOp : DivisionOp {
  static constexpr std::string_view kName = "TruncateMod";
  using Types = decltype(ConcatTypes(FloatTypes(), TypeList<int32_t, int64_t>()));
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      return Remainder(x, y);
    } else {
      return std::fmod(x, y);
    }
  }
};

struct ModOp : TruncateModOp {
  static constexpr std::string_view kName = "Mod";
};

struct DivNoNanOp {
  static constexpr std::string_view kName = "DivNoNan";
  static constexpr Domain kDomain{0.5, 2};
  using Types = FloatComplexTypes;
  template <typename T>
  TENON_HD static T Apply(T x, T y) {
    return y == T(0) ? T(0) : x / y;
  }
  static void Grad(Output x, Output y, Output, Output dz, Output* dx, Output* dy) {
    const Output cx = ConjugateOf(x), cy = ConjugateOf(y);
    *dx = DivNoNan(dz, cy);
    *dy = Mul(dz, DivNoNan(DivNoNan(Neg(cx), cy), cy));
  }
};

}  // namespace

void RegisterDivision(OpRegistry& ops) {
  RegisterBinaryList(ops, TypeList<DivOp, RealDivOp, FloorDivOp, TruncateDivOp, FloorModOp,
                                   TruncateModOp, ModOp, DivNoNanOp>());
}

}  // namespace tenon
