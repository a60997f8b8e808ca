// SPDX-License-Identifier: Apache-2.0
#include "ops/math/transcendental.h"

#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/register.h"

namespace tenon {

void RegisterCudaTranscendental(OpRegistry& ops) {
  cuda::AddUnaryList(ops, elementwise::TranscendentalOps());
}

}  // namespace tenon
