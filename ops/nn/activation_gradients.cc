// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/activation_gradients.h"

#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/nn/nn_ops.h"

namespace tenon {
namespace elementwise {

GradientPair ReluGradOp::Grad(Output, Output x, Output, Output dz) {
  return {ReluGrad(dz, x), ZerosLike(x)};
}

GradientPair Relu6GradOp::Grad(Output, Output x, Output, Output dz) {
  return {Relu6Grad(dz, x), ZerosLike(x)};
}

/// Where y is below 0 the gradient op multiplies by (y + constant), so its derivative by y is dy.
Output GradOfEluLike(Output dy, Output y, Output dz) {
  const Output zeros = ZerosLike(y);
  return SelectV2(y < zeros, dz * dy, zeros);
}

GradientPair EluGradOp::Grad(Output dy, Output y, Output, Output dz) {
  return {EluGrad(dz, y), GradOfEluLike(dy, y, dz)};
}

GradientPair SeluGradOp::Grad(Output dy, Output y, Output, Output dz) {
  return {SeluGrad(dz, y), GradOfEluLike(dy, y, dz)};
}

GradientPair SoftplusGradOp::Grad(Output dy, Output x, Output, Output dz) {
  const Output d_dy = SoftplusGrad(dz, x);
  // sigmoid'(x) = 1 / (exp(-x) + 2 + exp(x))
  const Output sum = Exp(-x) + 2 + Exp(x);
  return {d_dy, dz * dy / sum};
}

}  // namespace elementwise

void RegisterActivationGradients(OpRegistry& ops) {
  RegisterBinaryList(ops, elementwise::ActivationGradients());
}

}  // namespace tenon
