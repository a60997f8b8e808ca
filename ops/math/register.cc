// SPDX-License-Identifier: Apache-2.0
#include "ops/math/register.h"

namespace tenon {

void RegisterMathOps(OpRegistry& ops) {
  RegisterCumsum(ops);
  RegisterUnaryArithmetic(ops);
  RegisterTranscendental(ops);
  RegisterBinaryArithmetic(ops);
  RegisterDivision(ops);
  RegisterComparison(ops);
  RegisterReductions(ops);
  RegisterCast(ops);
  RegisterSelect(ops);
  RegisterAccumulate(ops);
  RegisterCheckNumerics(ops);
  RegisterMatMul(ops);
  RegisterBatchMatMul(ops);
  RegisterArgMax(ops);
  RegisterSegmentOps(ops);
  RegisterFusedOps(ops);
}

}  // namespace tenon
