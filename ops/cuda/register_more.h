// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"

namespace tenon {

/// Adds the kernels for the GPU of training, state, random values, tensor arrays and the nn family
/// to the ops of the registry, which knows all families.
void RegisterMoreCudaKernels(OpRegistry& ops);

// What it calls: one a .cu file.
void RegisterCudaGradientSteps(OpRegistry& ops);
void RegisterCudaAdaptiveSteps(OpRegistry& ops);
void RegisterCudaProximalSteps(OpRegistry& ops);
void RegisterCudaVariableUpdates(OpRegistry& ops);
void RegisterCudaResourceGather(OpRegistry& ops);
void RegisterCudaTensorArrayWrites(OpRegistry& ops);
void RegisterCudaSamples(OpRegistry& ops);
void RegisterCudaMultinomial(OpRegistry& ops);
void RegisterCudaPooling(OpRegistry& ops);
void RegisterCudaBatchNorm(OpRegistry& ops);
void RegisterCudaLrn(OpRegistry& ops);
void RegisterCudaConvolutions(OpRegistry& ops);

}  // namespace tenon
