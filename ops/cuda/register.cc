// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/register.h"

namespace tenon {

void RegisterCudaKernels(OpRegistry& ops) {
  RegisterCudaAccumulate(ops);
  RegisterCudaActivations(ops);
  RegisterCudaAdaptiveSteps(ops);
  RegisterCudaArgMax(ops);
  RegisterCudaBandPart(ops);
  RegisterCudaBatchNorm(ops);
  RegisterCudaBiasAdd(ops);
  RegisterCudaBinaryArithmetic(ops);
  RegisterCudaBitwise(ops);
  RegisterCudaCast(ops);
  RegisterCudaCheckNumerics(ops);
  RegisterCudaComparison(ops);
  RegisterCudaConvolutions(ops);
  RegisterCudaDivision(ops);
  RegisterCudaElementwiseGradients(ops);
  RegisterCudaExtremes(ops);
  RegisterCudaGather(ops);
  RegisterCudaGradientSteps(ops);
  RegisterCudaLeakyRelu(ops);
  RegisterCudaLosses(ops);
  RegisterCudaLrn(ops);
  RegisterCudaMatMul(ops);
  RegisterCudaMeans(ops);
  RegisterCudaMovingKernels(ops);
  RegisterCudaMultinomial(ops);
  RegisterCudaPad(ops);
  RegisterCudaPartition(ops);
  RegisterCudaPooling(ops);
  RegisterCudaProducts(ops);
  RegisterCudaProximalSteps(ops);
  RegisterCudaResourceGather(ops);
  RegisterCudaSamples(ops);
  RegisterCudaScans(ops);
  RegisterCudaSegments(ops);
  RegisterCudaSelect(ops);
  RegisterCudaSoftmax(ops);
  RegisterCudaSpecialFunctions(ops);
  RegisterCudaSums(ops);
  RegisterCudaTensorArrayWrites(ops);
  RegisterCudaTensorScatter(ops);
  RegisterCudaTopK(ops);
  RegisterCudaTranscendental(ops);
  RegisterCudaUnaryArithmetic(ops);
  RegisterCudaUnique(ops);
  RegisterCudaVariableUpdates(ops);
  RegisterCudaWhere(ops);
}

}  // namespace tenon
