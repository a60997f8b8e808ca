// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/register.h"

namespace tenon {

void RegisterCudaKernels(OpRegistry& ops) { RegisterCudnnKernels(ops); }

}  // namespace tenon
