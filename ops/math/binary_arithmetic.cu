// SPDX-License-Identifier: Apache-2.0
#include "ops/math/binary_arithmetic.h"

#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/register.h"

namespace tenon {

void RegisterCudaBinaryArithmetic(OpRegistry& ops) {
  cuda::AddBinaryList(ops, elementwise::BinaryArithmeticOps());
}

}  // namespace tenon
