// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/register.h"
#include "ops/training/adaptive_rules.h"
#include "ops/training/update_kernel.cuh"

namespace tenon {

void RegisterCudaAdaptiveSteps(OpRegistry& ops) {
  using namespace update_rules;  // NOLINT
  cuda::AddSteps<AdadeltaRule, AdadeltaRule>(ops, "Adadelta");
  cuda::AddSteps<AdagradRule, AdagradRule>(ops, "Adagrad");
  cuda::AddSteps<AdagradV2Rule, AdagradV2Rule>(ops, "AdagradV2");
  cuda::AddSteps<RMSPropRule<false>, RMSPropRule<true>>(ops, "RMSProp");
  cuda::AddSteps<CenteredRMSPropRule<false>, CenteredRMSPropRule<true>>(ops, "CenteredRMSProp");
}

}  // namespace tenon
