// SPDX-License-Identifier: Apache-2.0
#include "ops/math/transcendental.h"

#include <numbers>

#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/math/math_ops.h"

namespace tenon {
namespace elementwise {

/// y' = dy * conj(derivative): what a gradient is for complex numbers too.
Output Chain(Output dy, Output derivative) { return dy * ConjugateOf(derivative); }

Output ExpOp::Grad(Output, Output y, Output dy) { return Chain(dy, y); }

Output Expm1Op::Grad(Output x, Output, Output dy) { return Chain(dy, Exp(x)); }

Output LogOp::Grad(Output x, Output, Output dy) { return Chain(dy, Reciprocal(x)); }

Output Log1pOp::Grad(Output x, Output, Output dy) { return Chain(dy, Reciprocal(1 + x)); }

Output SinOp::Grad(Output x, Output, Output dy) { return Chain(dy, Cos(x)); }

Output CosOp::Grad(Output x, Output, Output dy) { return -Chain(dy, Sin(x)); }

Output TanOp::Grad(Output x, Output, Output dy) { return Chain(dy, Square(Reciprocal(Cos(x)))); }

Output AsinOp::Grad(Output x, Output, Output dy) { return Chain(dy, Rsqrt(1 - Square(x))); }

Output AcosOp::Grad(Output x, Output, Output dy) { return -Chain(dy, Rsqrt(1 - Square(x))); }

Output AtanOp::Grad(Output x, Output, Output dy) { return Chain(dy, Reciprocal(1 + Square(x))); }

Output SinhOp::Grad(Output x, Output, Output dy) { return Chain(dy, Cosh(x)); }

Output CoshOp::Grad(Output x, Output, Output dy) { return Chain(dy, Sinh(x)); }

Output AsinhOp::Grad(Output, Output y, Output dy) { return Chain(dy, Reciprocal(Cosh(y))); }

Output AcoshOp::Grad(Output, Output y, Output dy) { return Chain(dy, Reciprocal(Sinh(y))); }

Output AtanhOp::Grad(Output x, Output, Output dy) { return Chain(dy, Reciprocal(1 - Square(x))); }

Output TanhOp::Grad(Output, Output y, Output dy) { return TanhGrad(ConjugateOf(y), dy); }

Output SigmoidOp::Grad(Output, Output y, Output dy) { return SigmoidGrad(ConjugateOf(y), dy); }

/// dy * sign * 2 / sqrt(pi) * exp(-x^2)
Output ErfDerivative(Output x, Output dy, double sign) {
  return dy * (sign * 2 * std::numbers::inv_sqrtpi * Exp(-Square(x)));
}

Output ErfOp::Grad(Output x, Output, Output dy) { return ErfDerivative(x, dy, 1); }

Output ErfcOp::Grad(Output x, Output, Output dy) { return ErfDerivative(x, dy, -1); }

}  // namespace elementwise

void RegisterTranscendental(OpRegistry& ops) {
  RegisterUnaryList(ops, elementwise::TranscendentalOps());
}

}  // namespace tenon
