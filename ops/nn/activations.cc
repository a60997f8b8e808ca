// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/activations.h"

#include "core/op/op_registry.h"
#include "ops/nn/nn_ops.h"

namespace tenon {
namespace elementwise {

Output SoftplusOp::Grad(Output x, Output, Output dy) { return SoftplusGrad(dy, x); }

Output SoftsignOp::Grad(Output x, Output, Output dy) { return SoftsignGrad(dy, x); }

// NaN stays
Output ReluOp::Grad(Output, Output y, Output dy) { return ReluGrad(dy, y); }

Output Relu6Op::Grad(Output, Output y, Output dy) { return Relu6Grad(dy, y); }

Output EluOp::Grad(Output, Output y, Output dy) { return EluGrad(dy, y); }

Output SeluOp::Grad(Output, Output y, Output dy) { return SeluGrad(dy, y); }

}  // namespace elementwise

void RegisterActivations(OpRegistry& ops) { RegisterUnaryList(ops, elementwise::ActivationOps()); }

}  // namespace tenon
