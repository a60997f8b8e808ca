// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"

namespace tenon {

/// Adds the kernels for the GPU to the ops of the registry, which knows all families.
void RegisterCudaKernels(OpRegistry& ops);

// What it calls: one a .cu file.
void RegisterCudaBinaryArithmetic(OpRegistry& ops);
void RegisterCudaBitwise(OpRegistry& ops);
void RegisterCudaComparison(OpRegistry& ops);
void RegisterCudaDivision(OpRegistry& ops);
void RegisterCudaUnaryArithmetic(OpRegistry& ops);
void RegisterCudaTranscendental(OpRegistry& ops);
void RegisterCudaActivations(OpRegistry& ops);
void RegisterCudaElementwiseGradients(OpRegistry& ops);

}  // namespace tenon
