// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/activation_gradients.h"

#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/register.h"

namespace tenon {

void RegisterCudaActivationGradients(OpRegistry& ops) {
  cuda::AddBinaryList(ops, elementwise::ActivationGradients());
}

}  // namespace tenon
