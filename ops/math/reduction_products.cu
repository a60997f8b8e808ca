// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/reduction.cuh"
#include "ops/cuda/register.h"

namespace tenon {

void RegisterCudaProducts(OpRegistry& ops) {
  cuda::AddReduction<ProdReducer>(ops, "Prod", RealTypes());
}

}  // namespace tenon
