// SPDX-License-Identifier: Apache-2.0
#include "ops/math/division.h"

#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/register.h"

namespace tenon {

void RegisterCudaDivision(OpRegistry& ops) { cuda::AddBinaryList(ops, elementwise::DivisionOps()); }

}  // namespace tenon
