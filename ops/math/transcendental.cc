// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "core/op_registry.h"
#include "ops/composition.h"
#include "ops/elementwise.h"
#include "ops/math/math_ops.h"
#include "ops/math/vector_maths.h"

namespace tenon {
namespace {

/// y' = dy * conj(derivative): what a gradient is for complex numbers too.
Output Chain(Output dy, Output derivative) { return dy * ConjugateOf(derivative); }

/// Of complex numbers too.
template <OpName kOpName>
struct Function : Elementwise<kOpName, FloatComplexTypes> {
  static constexpr double kCost = 4;
};

struct ExpOp : Function<"Exp"> {
  static constexpr auto kFloatLoop = &VectorExp;
  TENON_HD static auto Apply(auto x) { return Exp(x); }
  static Output Grad(Output, Output y, Output dy) { return Chain(dy, y); }
};

struct Expm1Op : Function<"Expm1"> {
  static constexpr auto kFloatLoop = &VectorExpm1;
  TENON_HD static auto Apply(auto x) { return Expm1(x); }
  static Output Grad(Output x, Output, Output dy) { return Chain(dy, Exp(x)); }
};

struct LogOp : Function<"Log"> {
  static constexpr Domain kDomain{0.3, 2};
  static constexpr auto kFloatLoop = &VectorLog;
  TENON_HD static auto Apply(auto x) { return Log(x); }
  static Output Grad(Output x, Output, Output dy) { return Chain(dy, Reciprocal(x)); }
};

struct Log1pOp : Function<"Log1p"> {
  static constexpr Domain kDomain{-0.5, 2};
  static constexpr auto kFloatLoop = &VectorLog1p;
  TENON_HD static auto Apply(auto x) { return Log1p(x); }
  static Output Grad(Output x, Output, Output dy) { return Chain(dy, Reciprocal(1 + x)); }
};

struct SinOp : Function<"Sin"> {
  static constexpr auto kFloatLoop = &VectorSin;
  TENON_HD static auto Apply(auto x) { return Sin(x); }
  static Output Grad(Output x, Output, Output dy) { return Chain(dy, Cos(x)); }
};

struct CosOp : Function<"Cos"> {
  static constexpr auto kFloatLoop = &VectorCos;
  TENON_HD static auto Apply(auto x) { return Cos(x); }
  static Output Grad(Output x, Output, Output dy) { return -Chain(dy, Sin(x)); }
};

struct TanOp : Function<"Tan"> {
  static constexpr Domain kDomain{-1, 1};
  static constexpr auto kFloatLoop = &VectorTan;
  TENON_HD static auto Apply(auto x) { return Tan(x); }
  static Output Grad(Output x, Output, Output dy) { return Chain(dy, Square(Reciprocal(Cos(x)))); }
};

struct AsinOp : Function<"Asin"> {
  static constexpr Domain kDomain{-0.8, 0.8};
  TENON_HD static auto Apply(auto x) { return Asin(x); }
  static Output Grad(Output x, Output, Output dy) { return Chain(dy, Rsqrt(1 - Square(x))); }
};

struct AcosOp : Function<"Acos"> {
  static constexpr Domain kDomain{-0.8, 0.8};
  TENON_HD static auto Apply(auto x) { return Acos(x); }
  static Output Grad(Output x, Output, Output dy) { return -Chain(dy, Rsqrt(1 - Square(x))); }
};

struct AtanOp : Function<"Atan"> {
  TENON_HD static auto Apply(auto x) { return Atan(x); }
  static Output Grad(Output x, Output, Output dy) { return Chain(dy, Reciprocal(1 + Square(x))); }
};

struct SinhOp : Function<"Sinh"> {
  TENON_HD static auto Apply(auto x) { return Sinh(x); }
  static Output Grad(Output x, Output, Output dy) { return Chain(dy, Cosh(x)); }
};

struct CoshOp : Function<"Cosh"> {
  TENON_HD static auto Apply(auto x) { return Cosh(x); }
  static Output Grad(Output x, Output, Output dy) { return Chain(dy, Sinh(x)); }
};

struct AsinhOp : Function<"Asinh"> {
  TENON_HD static auto Apply(auto x) { return Asinh(x); }
  static Output Grad(Output, Output y, Output dy) { return Chain(dy, Reciprocal(Cosh(y))); }
};

struct AcoshOp : Function<"Acosh"> {
  static constexpr Domain kDomain{1.3, 3};
  TENON_HD static auto Apply(auto x) { return Acosh(x); }
  static Output Grad(Output, Output y, Output dy) { return Chain(dy, Reciprocal(Sinh(y))); }
};

struct AtanhOp : Function<"Atanh"> {
  static constexpr Domain kDomain{-0.8, 0.8};
  TENON_HD static auto Apply(auto x) { return Atanh(x); }
  static Output Grad(Output x, Output, Output dy) { return Chain(dy, Reciprocal(1 - Square(x))); }
};

struct TanhOp : Function<"Tanh"> {
  static constexpr auto kFloatLoop = &VectorTanh;
  TENON_HD static auto Apply(auto x) { return Tanh(x); }
  static Output Grad(Output, Output y, Output dy) { return TanhGrad(ConjugateOf(y), dy); }
};

struct SigmoidOp : Function<"Sigmoid"> {
  static constexpr auto kFloatLoop = &VectorSigmoid;
  TENON_HD static auto Apply(auto x) {
    const decltype(x) one(1);
    return one / (one + Exp(-x));
  }
  static Output Grad(Output, Output y, Output dy) { return SigmoidGrad(ConjugateOf(y), dy); }
};

/// dy * sign * 2 / sqrt(pi) * exp(-x^2)
Output ErfDerivative(Output x, Output dy, double sign) {
  return dy * (sign * 2 * std::numbers::inv_sqrtpi * Exp(-Square(x)));
}

struct ErfOp : Elementwise<"Erf", FloatTypes> {
  static constexpr double kCost = 4;
  static constexpr auto kFloatLoop = &VectorErf;
  TENON_HD static auto Apply(auto x) { return Erf(x); }
  static Output Grad(Output x, Output, Output dy) { return ErfDerivative(x, dy, 1); }
};

struct ErfcOp : Elementwise<"Erfc", FloatTypes> {
  static constexpr double kCost = 10;
  TENON_HD static auto Apply(auto x) { return Erfc(x); }
  static Output Grad(Output x, Output, Output dy) { return ErfDerivative(x, dy, -1); }
};

}  // namespace

void RegisterTranscendental(OpRegistry& ops) {
  RegisterUnaryList(
      ops, TypeList<ExpOp, Expm1Op, LogOp, Log1pOp, SinOp, CosOp, TanOp, AsinOp, AcosOp, AtanOp,
                    SinhOp, CoshOp, AsinhOp, AcoshOp, AtanhOp, TanhOp, SigmoidOp, ErfOp, ErfcOp>());
}

}  // namespace tenon
