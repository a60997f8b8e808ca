// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/register_more.h"

namespace tenon {

void RegisterMoreCudaKernels(OpRegistry& ops) {
  RegisterCudaGradientSteps(ops);
  RegisterCudaAdaptiveSteps(ops);
  RegisterCudaProximalSteps(ops);
  RegisterCudaVariableUpdates(ops);
  RegisterCudaResourceGather(ops);
  RegisterCudaTensorArrayWrites(ops);
  RegisterCudaSamples(ops);
  RegisterCudaMultinomial(ops);
  RegisterCudaPooling(ops);
  RegisterCudaBatchNorm(ops);
  RegisterCudaLrn(ops);
  RegisterCudaConvolutions(ops);
}

}  // namespace tenon
