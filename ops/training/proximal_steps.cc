// SPDX-License-Identifier: Apache-2.0
#include "ops/training/proximal_rules.h"

namespace tenon {

void RegisterProximalSteps(OpRegistry& ops) {
  AddSteps<update_rules::ProximalGradientDescentRule>(ops, "ProximalGradientDescent");
  AddSteps<update_rules::ProximalAdagradRule>(ops, "ProximalAdagrad");
  AddSteps<update_rules::AdagradDARule>(ops, "AdagradDA");
  AddSteps<update_rules::FtrlRule<false, false>, update_rules::FtrlRule<true, false>>(ops, "Ftrl");
  AddSteps<update_rules::FtrlRule<false, true>, update_rules::FtrlRule<true, true>>(ops, "FtrlV2");
}

}  // namespace tenon
