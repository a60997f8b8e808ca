// SPDX-License-Identifier: Apache-2.0
#include "ops/math/unary_arithmetic.h"

#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/math/math_ops.h"

namespace tenon {
namespace elementwise {

Output AbsOp::Grad(Output x, Output, Output dy) { return dy * Sign(x); }

Output NegOp::Grad(Output, Output, Output dy) { return -dy; }

Output SignOp::Grad(Output x, Output, Output) { return ZerosLike(x); }

Output SquareOp::Grad(Output x, Output, Output dy) { return dy * (2 * ConjugateOf(x)); }

Output SqrtOp::Grad(Output, Output y, Output dy) { return SqrtGrad(y, dy); }

Output RsqrtOp::Grad(Output, Output y, Output dy) { return RsqrtGrad(y, dy); }

Output ReciprocalOp::Grad(Output, Output y, Output dy) { return ReciprocalGrad(y, dy); }

Output InvOp::Grad(Output, Output y, Output dy) { return InvGrad(y, dy); }

Output ConjOp::Grad(Output, Output, Output dy) { return Conj(dy); }

}  // namespace elementwise

void RegisterUnaryArithmetic(OpRegistry& ops) {
  RegisterUnaryList(ops, elementwise::UnaryArithmeticOps());
}

}  // namespace tenon
