// SPDX-License-Identifier: Apache-2.0
#include "ops/training/gradient_rules.h"

namespace tenon {

void RegisterGradientSteps(OpRegistry& ops) {
  AddSteps<update_rules::GradientDescentRule>(ops, "GradientDescent");
  AddSteps<update_rules::MomentumRule>(ops, "Momentum");
  AddSteps<update_rules::KerasMomentumRule>(ops, "KerasMomentum");
  AddSteps<update_rules::AdamRule>(ops, "Adam");
  AddSteps<update_rules::AdamWithAmsgradRule>(ops, "AdamWithAmsgrad");
  AddSteps<update_rules::AdaMaxRule>(ops, "AdaMax");
  AddSteps<update_rules::AddSignRule>(ops, "AddSign");
  AddSteps<update_rules::PowerSignRule>(ops, "PowerSign");
}

}  // namespace tenon
