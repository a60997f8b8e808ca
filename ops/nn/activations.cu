// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/activations.h"

#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/register.h"

namespace tenon {

void RegisterCudaActivations(OpRegistry& ops) {
  cuda::AddUnaryList(ops, elementwise::ActivationOps());
}

}  // namespace tenon
