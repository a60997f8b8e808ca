// SPDX-License-Identifier: Apache-2.0
#include "ops/math/comparison.h"

#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/register.h"

namespace tenon {

void RegisterCudaComparison(OpRegistry& ops) {
  cuda::AddBinaryList(ops, elementwise::ComparisonOps());
}

}  // namespace tenon
