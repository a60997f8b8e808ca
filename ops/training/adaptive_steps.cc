// SPDX-License-Identifier: Apache-2.0
#include "ops/training/adaptive_rules.h"

namespace tenon {

void RegisterAdaptiveSteps(OpRegistry& ops) {
  AddSteps<step_rules::AdadeltaRule>(ops, "Adadelta");
  AddSteps<step_rules::AdagradRule>(ops, "Adagrad");
  AddSteps<step_rules::AdagradV2Rule>(ops, "AdagradV2");
  AddSteps<step_rules::RMSPropRule<false>, step_rules::RMSPropRule<true>>(ops, "RMSProp");
  AddSteps<step_rules::CenteredRMSPropRule<false>, step_rules::CenteredRMSPropRule<true>>(
      ops, "CenteredRMSProp");
}

}  // namespace tenon
