// SPDX-License-Identifier: Apache-2.0
#include "ops/math/bitwise.h"

#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/register.h"

namespace tenon {

void RegisterCudaBitwise(OpRegistry& ops) {
  cuda::AddBinaryList(ops, elementwise::BitwiseBinaryOps());
  cuda::AddUnaryList(ops, elementwise::BitwiseUnaryOps());
}

}  // namespace tenon
