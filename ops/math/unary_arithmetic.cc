// SPDX-License-Identifier: Apache-2.0
#include "ops/composition.h"
#include "ops/elementwise.h"
#include "ops/math/register.h"

namespace tenon {
namespace {

struct AbsOp {
  static constexpr std::string_view kName = "Abs";
  using Types = SignedTypes;
  static constexpr Domain kDomain{0.3, 2};
  template <typename T>
  TENON_HD static T Apply(T x) {
    return Abs(x);
  }
  static Output Grad(Output x, Output, Output dy) { return Mul(dy, Sign(x)); }
};

struct NegOp {
  static constexpr std::string_view kName = "Neg";
  using Types = SignedComplexTypes;
  template <typename T>
  TENON_HD static T Apply(T x) {
    return Negative(x);
  }
  static Output Grad(Output, Output, Output dy) { return Neg(dy); }
};

struct SignOp {
  static constexpr std::string_view kName = "Sign";
  using Types = SignedComplexTypes;
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
  static Output Grad(Output x, Output, Output) { return ZerosLike(x); }
};

struct SquareOp {
  static constexpr std::string_view kName = "Square";
  using Types = NumericTypes;
  template <typename T>
  TENON_HD static T Apply(T x) {
    return Times(x, x);
  }
  static Output Grad(Output x, Output, Output dy) { return Mul(dy, Scaled(ConjugateOf(x), 2)); }
};

struct SqrtOp {
  static constexpr std::string_view kName = "Sqrt";
  using Types = FloatComplexTypes;
  static constexpr Domain kDomain{0.3, 2};
  template <typename T>
  TENON_HD static T Apply(T x) {
    return Sqrt(x);
  }
  static Output Grad(Output, Output y, Output dy) { return SqrtGrad(y, dy); }
};

struct RsqrtOp {
  static constexpr std::string_view kName = "Rsqrt";
  using Types = FloatComplexTypes;
  static constexpr Domain kDomain{0.3, 2};
  template <typename T>
  TENON_HD static T Apply(T x) {
    return T(1) / Sqrt(x);
  }
  static Output Grad(Output, Output y, Output dy) { return RsqrtGrad(y, dy); }
};

struct ReciprocalOp {
  static constexpr std::string_view kName = "Reciprocal";
  using Types = SignedComplexTypes;
  static constexpr Domain kDomain{0.3, 2};
  template <typename T>
  TENON_HD static T Apply(T x) {
    if constexpr (std::is_integral_v<T>) {
      return x == T(0) ? T(0) : T(1) / x;
    } else {
      return T(1) / x;
    }
  }
  static Output Grad(Output, Output y, Output dy) { return ReciprocalGrad(y, dy); }
};

struct InvOp : ReciprocalOp {
  static constexpr std::string_view kName = "Inv";
  static Output Grad(Output, Output y, Output dy) { return InvGrad(y, dy); }
};

struct ConjOp {
  static constexpr std::string_view kName = "Conj";
  using Types = ComplexTypes;
  template <typename T>
  TENON_HD static T Apply(T x) {
    return Conjugate(x);
  }
  static Output Grad(Output, Output, Output dy) { return Conj(dy); }
};

// The steps below have gradient 0 wherever they have one, which TensorFlow states as none at all.

#define TENON_ROUNDING_OP(NAME, TYPES, FUNCTION)            \
  struct NAME##Op {                                              \
    static constexpr std::string_view kName = #NAME; \
    static constexpr bool kNotDifferentiable = true;             \
    using Types = TYPES;                                         \
    template <typename T>                                        \
    TENON_HD static T Apply(T x) {                               \
      return FUNCTION(x);                                        \
    }                                                            \
  };
TENON_ROUNDING_OP(Floor, FloatTypes, Floor)
TENON_ROUNDING_OP(Ceil, FloatTypes, Ceil)
TENON_ROUNDING_OP(Round, SignedComplexTypes, RoundToEven)
TENON_ROUNDING_OP(Rint, FloatTypes, RoundToEven)
#undef TENON_ROUNDING_OP

struct IsNanOp {
  static constexpr std::string_view kName = "IsNan";
  using Types = FloatTypes;
  template <typename T>
  TENON_HD static bool Apply(T x) {
    return IsNan(x);
  }
};

struct IsInfOp {
  static constexpr std::string_view kName = "IsInf";
  using Types = FloatTypes;
  template <typename T>
  TENON_HD static bool Apply(T x) {
    return Abs(x) == std::numeric_limits<T>::infinity();
  }
};

struct IsFiniteOp {
  static constexpr std::string_view kName = "IsFinite";
  using Types = FloatTypes;
  template <typename T>
  TENON_HD static bool Apply(T x) {
    return Abs(x) < std::numeric_limits<T>::infinity();
  }
};

struct LogicalNotOp {
  static constexpr std::string_view kName = "LogicalNot";
  static constexpr bool kNotDifferentiable = true;
  using Types = TypeList<bool>;
  TENON_HD static bool Apply(bool x) { return !x; }
};

struct ZerosLikeOp {
  static constexpr std::string_view kName = "ZerosLike";
  static constexpr bool kNotDifferentiable = true;
  using Types = decltype(ConcatTypes(PlainTypes(), TypeList<TString>()));
  template <typename T>
  TENON_HD static T Apply(const T&) {
    return T{};
  }
};

struct OnesLikeOp {
  static constexpr std::string_view kName = "OnesLike";
  static constexpr bool kNotDifferentiable = true;
  using Types = PlainTypes;
  template <typename T>
  TENON_HD static T Apply(T) {
    return T(1);
  }
};

}  // namespace

void RegisterUnaryArithmetic(OpRegistry& ops) {
  RegisterUnaryList(ops, TypeList<AbsOp, NegOp, SignOp, SquareOp, SqrtOp, RsqrtOp, ReciprocalOp,
                                  InvOp, ConjOp, FloorOp, CeilOp, RoundOp, RintOp, IsNanOp, IsInfOp,
                                  IsFiniteOp, LogicalNotOp, ZerosLikeOp, OnesLikeOp>());
}

}  // namespace tenon
