// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/register.h"
#include "ops/training/gradient_rules.h"
#include "ops/training/update_kernel.cuh"

namespace tenon {

void RegisterCudaGradientSteps(OpRegistry& ops) {
  using namespace update_rules;  // NOLINT
  using cuda::NoRule;
  cuda::AddSteps<GradientDescentRule, NoRule>(ops, "GradientDescent");
  cuda::AddSteps<MomentumRule, MomentumRule>(ops, "Momentum");
  cuda::AddSteps<KerasMomentumRule, KerasMomentumRule>(ops, "KerasMomentum");
  cuda::AddSteps<AdamRule, NoRule>(ops, "Adam");
  cuda::AddSteps<AdamWithAmsgradRule, NoRule>(ops, "AdamWithAmsgrad");
  cuda::AddSteps<AdaMaxRule, NoRule>(ops, "AdaMax");
  cuda::AddSteps<AddSignRule, NoRule>(ops, "AddSign");
  cuda::AddSteps<PowerSignRule, NoRule>(ops, "PowerSign");
}

}  // namespace tenon
