// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/elementwise_gradients.h"

#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/nn/nn_ops.h"

namespace tenon {
namespace elementwise {

GradientPair SigmoidGradOp::Grad(Output y, Output dy, Output, Output dz) {
  // dz * dy * (1 - 2 y)
  const Output c = ConjugateOf(y), product = dz * ConjugateOf(dy);
  return {product - 2 * product * c, SigmoidGrad(c, dz)};
}

GradientPair TanhGradOp::Grad(Output y, Output dy, Output, Output dz) {
  const Output c = ConjugateOf(y);
  return {-2 * dz * ConjugateOf(dy) * c, TanhGrad(c, dz)};
}

GradientPair SqrtGradOp::Grad(Output y, Output, Output z, Output dz) {
  const Output ratio = dz / y;
  return {-ConjugateOf(ratio) * z, 0.5 * ratio};
}

GradientPair RsqrtGradOp::Grad(Output y, Output dy, Output, Output dz) {
  const Output c = ConjugateOf(y);
  return {-1.5 * ConjugateOf(dz) * dy * Square(c), RsqrtGrad(c, dz)};
}

GradientPair ReciprocalGradOp::Grad(Output y, Output dy, Output, Output dz) {
  const Output c = ConjugateOf(y);
  return {-2 * ConjugateOf(dz) * dy * c, ReciprocalGrad(c, dz)};
}

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

void RegisterElementwiseGradients(OpRegistry& ops) {
  RegisterBinaryList(ops, elementwise::GradientOps());
}

}  // namespace tenon
