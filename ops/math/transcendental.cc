// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "ops/composition.h"
#include "ops/elementwise.h"
#include "ops/math/register.h"
#include "ops/math/vector_maths.h"

namespace tenon {
namespace {

/// y' = dy * conj(derivative): what a gradient is for complex numbers too.
Output Chain(Output dy, Output derivative) { return Mul(dy, ConjugateOf(derivative)); }
Output OneLike(Output x) { return Const(1, {.dtype = x.dtype()}); }

// Opens the struct of a function of complex numbers whose maths has the op's name.
#define TENON_FUNCTION_OP(NAME)                             \
  struct NAME##Op {                                              \
    static constexpr std::string_view kName = #NAME; \
    using Types = FloatComplexTypes;                             \
    static constexpr double kCost = 4;                           \
    template <typename T>                                        \
    TENON_HD static T Apply(T x) {                               \
      return NAME(x);                                            \
    }

TENON_FUNCTION_OP(Exp)
static constexpr auto kFloatLoop = &VectorExp;
static Output Grad(Output, Output y, Output dy) { return Chain(dy, y); }
};

TENON_FUNCTION_OP(Expm1)
static constexpr auto kFloatLoop = &VectorExpm1;
static Output Grad(Output x, Output, Output dy) { return Chain(dy, Exp(x)); }
};

TENON_FUNCTION_OP(Log)
static constexpr Domain kDomain{0.3, 2};
static constexpr auto kFloatLoop = &VectorLog;
static Output Grad(Output x, Output, Output dy) { return Chain(dy, Reciprocal(x)); }
};

TENON_FUNCTION_OP(Log1p)
static constexpr Domain kDomain{-0.5, 2};
static constexpr auto kFloatLoop = &VectorLog1p;
static Output Grad(Output x, Output, Output dy) {
  return Chain(dy, Reciprocal(AddV2(OneLike(x), x)));
}
};

TENON_FUNCTION_OP(Sin)
static constexpr auto kFloatLoop = &VectorSin;
static Output Grad(Output x, Output, Output dy) { return Chain(dy, Cos(x)); }
};

TENON_FUNCTION_OP(Cos)
static constexpr auto kFloatLoop = &VectorCos;
static Output Grad(Output x, Output, Output dy) { return Neg(Chain(dy, Sin(x))); }
};

TENON_FUNCTION_OP(Tan)
static constexpr Domain kDomain{-1, 1};
static constexpr auto kFloatLoop = &VectorTan;
static Output Grad(Output x, Output, Output dy) { return Chain(dy, Square(Reciprocal(Cos(x)))); }
};

TENON_FUNCTION_OP(Asin)
static constexpr Domain kDomain{-0.8, 0.8};
static Output Grad(Output x, Output, Output dy) {
  return Chain(dy, Rsqrt(Sub(OneLike(x), Square(x))));
}
};

TENON_FUNCTION_OP(Acos)
static constexpr Domain kDomain{-0.8, 0.8};
static Output Grad(Output x, Output, Output dy) {
  return Neg(Chain(dy, Rsqrt(Sub(OneLike(x), Square(x)))));
}
};

TENON_FUNCTION_OP(Atan)
static Output Grad(Output x, Output, Output dy) {
  return Chain(dy, Reciprocal(AddV2(OneLike(x), Square(x))));
}
};

TENON_FUNCTION_OP(Sinh)
static Output Grad(Output x, Output, Output dy) { return Chain(dy, Cosh(x)); }
};

TENON_FUNCTION_OP(Cosh)
static Output Grad(Output x, Output, Output dy) { return Chain(dy, Sinh(x)); }
};

TENON_FUNCTION_OP(Asinh)
static Output Grad(Output, Output y, Output dy) { return Chain(dy, Reciprocal(Cosh(y))); }
};

TENON_FUNCTION_OP(Acosh)
static constexpr Domain kDomain{1.3, 3};
static Output Grad(Output, Output y, Output dy) { return Chain(dy, Reciprocal(Sinh(y))); }
};

TENON_FUNCTION_OP(Atanh)
static constexpr Domain kDomain{-0.8, 0.8};
static Output Grad(Output x, Output, Output dy) {
  return Chain(dy, Reciprocal(Sub(OneLike(x), Square(x))));
}
};

TENON_FUNCTION_OP(Tanh)
static constexpr auto kFloatLoop = &VectorTanh;
static Output Grad(Output, Output y, Output dy) { return TanhGrad(y, dy); }
};
#undef TENON_FUNCTION_OP

struct SigmoidOp {
  static constexpr std::string_view kName = "Sigmoid";
  using Types = FloatComplexTypes;
  static constexpr double kCost = 4;
  static constexpr auto kFloatLoop = &VectorSigmoid;
  template <typename T>
  TENON_HD static T Apply(T x) {
    return T(1) / (T(1) + Exp(-x));
  }
  static Output Grad(Output, Output y, Output dy) { return SigmoidGrad(y, dy); }
};

/// dy * sign * 2 / sqrt(pi) * exp(-x^2)
Output ErfDerivative(Output x, Output dy, double sign) {
  return Mul(dy, Scaled(Exp(Neg(Square(x))), sign * 2 * std::numbers::inv_sqrtpi));
}

struct ErfOp {
  static constexpr std::string_view kName = "Erf";
  using Types = FloatTypes;
  static constexpr double kCost = 4;
  static constexpr auto kFloatLoop = &VectorErf;
  template <typename T>
  TENON_HD static T Apply(T x) {
    return Erf(x);
  }
  static Output Grad(Output x, Output, Output dy) { return ErfDerivative(x, dy, 1); }
};

struct ErfcOp {
  static constexpr std::string_view kName = "Erfc";
  using Types = FloatTypes;
  static constexpr double kCost = 10;
  template <typename T>
  TENON_HD static T Apply(T x) {
    return Erfc(x);
  }
  static Output Grad(Output x, Output, Output dy) { return ErfDerivative(x, dy, -1); }
};

}  // namespace

void RegisterTranscendental(OpRegistry& ops) {
  RegisterUnaryList(
      ops, TypeList<ExpOp, Expm1Op, LogOp, Log1pOp, SinOp, CosOp, TanOp, AsinOp, AcosOp, AtanOp,
                    SinhOp, CoshOp, AsinhOp, AcoshOp, AtanhOp, TanhOp, SigmoidOp, ErfOp, ErfcOp>());
}

}  // namespace tenon
