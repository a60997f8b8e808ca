// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/register.h"

namespace tenon {

void RegisterCudaKernels(OpRegistry& ops) {
  RegisterCudaAccumulate(ops);
  RegisterCudaActivations(ops);
  RegisterCudaArgMax(ops);
  RegisterCudaBiasAdd(ops);
  RegisterCudaBinaryArithmetic(ops);
  RegisterCudaBitwise(ops);
  RegisterCudaCast(ops);
  RegisterCudaCheckNumerics(ops);
  RegisterCudaComparison(ops);
  RegisterCudaDivision(ops);
  RegisterCudaElementwiseGradients(ops);
  RegisterCudaExtremes(ops);
  RegisterCudaGather(ops);
  RegisterCudaLeakyRelu(ops);
  RegisterCudaLosses(ops);
  RegisterCudaMatMul(ops);
  RegisterCudaMeans(ops);
  RegisterCudaMovingKernels(ops);
  RegisterCudaPartition(ops);
  RegisterCudaProducts(ops);
  RegisterCudaScans(ops);
  RegisterCudaSegments(ops);
  RegisterCudaSelect(ops);
  RegisterCudaSoftmax(ops);
  RegisterCudaSums(ops);
  RegisterCudaTopK(ops);
  RegisterCudaTranscendental(ops);
  RegisterCudaUnaryArithmetic(ops);
  RegisterCudaWhere(ops);
}

}  // namespace tenon
