// SPDX-License-Identifier: Apache-2.0
#include "ops/training/adaptive_rules.h"

namespace tenon {

void RegisterAdaptiveSteps(OpRegistry& ops) {
  AddSteps<update_rules::AdadeltaRule>(ops, "Adadelta");
  AddSteps<update_rules::AdagradRule>(ops, "Adagrad");
  AddSteps<update_rules::AdagradV2Rule>(ops, "AdagradV2");
  AddSteps<update_rules::RMSPropRule<false>, update_rules::RMSPropRule<true>>(ops, "RMSProp");
  AddSteps<update_rules::CenteredRMSPropRule<false>, update_rules::CenteredRMSPropRule<true>>(
      ops, "CenteredRMSProp");
}

}  // namespace tenon
