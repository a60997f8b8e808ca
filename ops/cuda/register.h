// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/op_registry.h"

namespace tenon {

/// Adds the CUDA kernels of ops to a registry that has all ops of this library. They are in the
/// plugin for GPUs, not in the library itself.
void RegisterCudaKernels(OpRegistry& ops);

// What it calls: a function a .cu file.
void RegisterCudaAccumulate(OpRegistry& ops);
void RegisterCudaActivations(OpRegistry& ops);
void RegisterCudaAdaptiveSteps(OpRegistry& ops);
void RegisterCudaArgMax(OpRegistry& ops);
void RegisterCudaBandPart(OpRegistry& ops);
void RegisterCudaBatchNorm(OpRegistry& ops);
void RegisterCudaBiasAdd(OpRegistry& ops);
void RegisterCudaBinaryArithmetic(OpRegistry& ops);
void RegisterCudaBitwise(OpRegistry& ops);
void RegisterCudaCast(OpRegistry& ops);
void RegisterCudaCheckNumerics(OpRegistry& ops);
void RegisterCudaComparison(OpRegistry& ops);
void RegisterCudaConvolutions(OpRegistry& ops);
void RegisterCudaDivision(OpRegistry& ops);
void RegisterCudaElementwiseGradients(OpRegistry& ops);
void RegisterCudaExtremes(OpRegistry& ops);
void RegisterCudaGather(OpRegistry& ops);
void RegisterCudaGradientSteps(OpRegistry& ops);
void RegisterCudaLeakyRelu(OpRegistry& ops);
void RegisterCudaLosses(OpRegistry& ops);
void RegisterCudaLrn(OpRegistry& ops);
void RegisterCudaMatMul(OpRegistry& ops);
void RegisterCudaMeans(OpRegistry& ops);
void RegisterCudaMovingKernels(OpRegistry& ops);
void RegisterCudaMultinomial(OpRegistry& ops);
void RegisterCudaPad(OpRegistry& ops);
void RegisterCudaPartition(OpRegistry& ops);
void RegisterCudaPooling(OpRegistry& ops);
void RegisterCudaProducts(OpRegistry& ops);
void RegisterCudaProximalSteps(OpRegistry& ops);
void RegisterCudaResourceGather(OpRegistry& ops);
void RegisterCudaSamples(OpRegistry& ops);
void RegisterCudaScans(OpRegistry& ops);
void RegisterCudaSegments(OpRegistry& ops);
void RegisterCudaSelect(OpRegistry& ops);
void RegisterCudaSoftmax(OpRegistry& ops);
void RegisterCudaSpecialFunctions(OpRegistry& ops);
void RegisterCudaSums(OpRegistry& ops);
void RegisterCudaTensorArrayWrites(OpRegistry& ops);
void RegisterCudaTensorScatter(OpRegistry& ops);
void RegisterCudaTopK(OpRegistry& ops);
void RegisterCudaTranscendental(OpRegistry& ops);
void RegisterCudaUnaryArithmetic(OpRegistry& ops);
void RegisterCudaUnique(OpRegistry& ops);
void RegisterCudaVariableUpdates(OpRegistry& ops);
void RegisterCudaWhere(OpRegistry& ops);

}  // namespace tenon
