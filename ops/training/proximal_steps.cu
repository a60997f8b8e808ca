// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/register.h"
#include "ops/training/proximal_rules.h"
#include "ops/training/update_kernel.cuh"

namespace tenon {

void RegisterCudaProximalSteps(OpRegistry& ops) {
  using namespace update_rules;  // NOLINT
  cuda::AddSteps<ProximalGradientDescentRule, ProximalGradientDescentRule>(
      ops, "ProximalGradientDescent");
  cuda::AddSteps<ProximalAdagradRule, ProximalAdagradRule>(ops, "ProximalAdagrad");
  cuda::AddSteps<AdagradDARule, AdagradDARule>(ops, "AdagradDA");
  cuda::AddSteps<FtrlRule<false, false>, FtrlRule<true, false>>(ops, "Ftrl");
  cuda::AddSteps<FtrlRule<false, true>, FtrlRule<true, true>>(ops, "FtrlV2");
}

}  // namespace tenon
