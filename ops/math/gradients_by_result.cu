// SPDX-License-Identifier: Apache-2.0
#include "ops/math/gradients_by_result.h"

#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/register.h"

namespace tenon {

void RegisterCudaGradientsByResult(OpRegistry& ops) {
  cuda::AddBinaryList(ops, elementwise::GradientsByResult());
}

}  // namespace tenon
