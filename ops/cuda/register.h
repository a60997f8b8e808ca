// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/op_registry.h"

namespace tenon {

/// Adds the CUDA kernels of ops to a registry that has all ops of this library. They are in the
/// plugin for GPUs, not in the library itself. The build makes it: it calls every
/// `void RegisterCudaXxx(OpRegistry& ops)` of the .cu files.
void RegisterCudaKernels(OpRegistry& ops);

}  // namespace tenon
