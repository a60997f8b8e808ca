// SPDX-License-Identifier: Apache-2.0
#include "ops/math/division.h"

#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/math/math_ops.h"

namespace tenon {
namespace elementwise {

GradientPair DivOp::Grad(Output x, Output y, Output, Output dz) {
  const Output cx = ConjugateOf(x), cy = ConjugateOf(y);
  return {RealDiv(dz, cy), dz * RealDiv(RealDiv(-cx, cy), cy)};
}

GradientPair FloorModOp::Grad(Output x, Output y, Output, Output dz) {
  return {dz, dz * -FloorDiv(x, y)};
}

GradientPair DivNoNanOp::Grad(Output x, Output y, Output, Output dz) {
  const Output cx = ConjugateOf(x), cy = ConjugateOf(y);
  return {DivNoNan(dz, cy), dz * DivNoNan(DivNoNan(-cx, cy), cy)};
}

GradientPair XdivyOp::Grad(Output x, Output y, Output, Output dz) {
  // The gradient is TensorFlow's, without conjugates.
  const Output not_zero = Cast(NotEqual(x, ZerosLike(x)), x.dtype());
  return {dz * Xdivy(not_zero, y), dz * Xdivy(-x, Square(y))};
}

GradientPair XlogyOp::Grad(Output x, Output y, Output, Output dz) {
  const Output not_zero = Cast(NotEqual(x, ZerosLike(x)), x.dtype());
  return {dz * Xlogy(not_zero, y), dz * Xdivy(x, y)};
}

GradientPair Xlog1pyOp::Grad(Output x, Output y, Output, Output dz) {
  const Output not_zero = Cast(NotEqual(x, ZerosLike(x)), x.dtype());
  return {dz * Xlog1py(not_zero, y), dz * Xdivy(x, y + 1)};
}

GradientPair MulNoNanOp::Grad(Output x, Output y, Output, Output dz) {
  return {MulNoNan(dz, y), MulNoNan(x, dz)};
}

}  // namespace elementwise

void RegisterDivision(OpRegistry& ops) { RegisterBinaryList(ops, elementwise::DivisionOps()); }

}  // namespace tenon
