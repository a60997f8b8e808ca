// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/elementwise_gradients.h"

#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/register.h"

namespace tenon {

void RegisterCudaElementwiseGradients(OpRegistry& ops) {
  cuda::AddBinaryList(ops, elementwise::GradientOps());
}

}  // namespace tenon
