// SPDX-License-Identifier: Apache-2.0
#include "ops/math/unary_arithmetic.h"

#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/register.h"

namespace tenon {

void RegisterCudaUnaryArithmetic(OpRegistry& ops) {
  cuda::AddUnaryList(ops, elementwise::UnaryArithmeticOps());
}

}  // namespace tenon
