// SPDX-License-Identifier: Apache-2.0
#include "ops/math/binary_arithmetic.h"

#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/math/math_ops.h"

namespace tenon {
namespace elementwise {

GradientPair AddV2Op::Grad(Output, Output, Output, Output dz) { return {dz, dz}; }

GradientPair SubOp::Grad(Output, Output, Output, Output dz) { return {dz, -dz}; }

GradientPair MulOp::Grad(Output x, Output y, Output, Output dz) {
  return {dz * ConjugateOf(y), dz * ConjugateOf(x)};
}

// The gradient goes to x where both are equal.
GradientPair MaximumOp::Grad(Output x, Output y, Output, Output dz) { return Choose(x >= y, dz); }

GradientPair MaximumOp::Choose(Output x_wins, Output dz) {
  const Output zero = Const(0, {.dtype = dz.dtype()});
  return {SelectV2(x_wins, dz, zero), SelectV2(x_wins, zero, dz)};
}

GradientPair MinimumOp::Grad(Output x, Output y, Output, Output dz) {
  return MaximumOp::Choose(x <= y, dz);
}

GradientPair SquaredDifferenceOp::Grad(Output x, Output y, Output, Output dz) {
  const Output dx = 2 * dz * (x - y);
  return {dx, -dx};
}

GradientPair PowOp::Grad(Output x, Output y, Output z, Output dz) {
  const Output cx = ConjugateOf(x), cy = ConjugateOf(y), cz = ConjugateOf(z);
  const Output one = Const(1, {.dtype = x.dtype()}), zero = Const(0, {.dtype = x.dtype()});
  const Output dx = dz * cy * Pow(cx, cy - one);
  // The logarithm of what it has none of counts as 0, and is not computed: 0 * NaN is NaN.
  const Output has_log = IsComplex(x.dtype()) ? NotEqual(cx, zero) : cx > zero;
  const Output log = SelectV2(has_log, Log(SelectV2(has_log, cx, one)), zero);
  return {dx, dz * cz * log};
}

GradientPair Atan2Op::Grad(Output y, Output x, Output, Output dz) {
  const Output part = dz / (Square(y) + Square(x));
  return {part * x, -part * y};
}

GradientPair NextAfterOp::Grad(Output, Output, Output, Output dz) { return {dz, ZerosLike(dz)}; }

}  // namespace elementwise

void RegisterBinaryArithmetic(OpRegistry& ops) {
  RegisterBinaryList(ops, elementwise::BinaryArithmeticOps());
}

}  // namespace tenon
