// SPDX-License-Identifier: Apache-2.0
#include "ops/math/gradients_by_result.h"

#include "core/op/op_registry.h"
#include "ops/composition.h"

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

}  // namespace elementwise

void RegisterGradientsByResult(OpRegistry& ops) {
  RegisterBinaryList(ops, elementwise::GradientsByResult());
}

}  // namespace tenon
