// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/reduction.cuh"
#include "ops/cuda/register.h"

namespace tenon {

void RegisterCudaMeans(OpRegistry& ops) {
  cuda::AddReduction<MeanReducer>(ops, "Mean", RealTypes());
  cuda::AddReduction<NormReducer>(ops, "EuclideanNorm", FloatTypes());
}

}  // namespace tenon
