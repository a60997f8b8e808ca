// SPDX-License-Identifier: Apache-2.0
#include "ops/training/gradient_rules.h"

namespace tenon {

void RegisterGradientSteps(OpRegistry& ops) {
  AddSteps<step_rules::GradientDescentRule>(ops, "GradientDescent");
  AddSteps<step_rules::MomentumRule>(ops, "Momentum");
  AddSteps<step_rules::KerasMomentumRule>(ops, "KerasMomentum");
  AddSteps<step_rules::AdamRule>(ops, "Adam");
  AddSteps<step_rules::AdamWithAmsgradRule>(ops, "AdamWithAmsgrad");
  AddSteps<step_rules::AdaMaxRule>(ops, "AdaMax");
  AddSteps<step_rules::AddSignRule>(ops, "AddSign");
  AddSteps<step_rules::PowerSignRule>(ops, "PowerSign");
}

}  // namespace tenon
