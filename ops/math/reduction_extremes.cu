// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/reduction.cuh"
#include "ops/cuda/register.h"

namespace tenon {

void RegisterCudaExtremes(OpRegistry& ops) {
  cuda::AddReduction<MaxReducer>(ops, "Max", RealTypes());
  cuda::AddReduction<MinReducer>(ops, "Min", RealTypes());
  // false is less than true.
  cuda::AddReduction<MinReducer>(ops, "All", TypeList<bool>());
  cuda::AddReduction<MaxReducer>(ops, "Any", TypeList<bool>());
}

}  // namespace tenon
