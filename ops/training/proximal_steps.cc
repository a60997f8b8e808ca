// SPDX-License-Identifier: Apache-2.0
#include "ops/training/proximal_rules.h"

namespace tenon {

void RegisterProximalSteps(OpRegistry& ops) {
  AddSteps<step_rules::ProximalGradientDescentRule>(ops, "ProximalGradientDescent");
  AddSteps<step_rules::ProximalAdagradRule>(ops, "ProximalAdagrad");
  AddSteps<step_rules::AdagradDARule>(ops, "AdagradDA");
  AddSteps<step_rules::FtrlRule<false, false>, step_rules::FtrlRule<true, false>>(ops, "Ftrl");
  AddSteps<step_rules::FtrlRule<false, true>, step_rules::FtrlRule<true, true>>(ops, "FtrlV2");
}

}  // namespace tenon
