// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"

namespace tenon {

/// Adds the CUDA kernels of ops to a registry that has all ops of this library. They are in the
/// plugin for GPUs, not in the library itself.
void RegisterCudaKernels(OpRegistry& ops);

/// Those of them that need cuDNN; none where the plugin was built without it.
void RegisterCudnnKernels(OpRegistry& ops);

}  // namespace tenon
