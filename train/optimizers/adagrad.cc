// SPDX-License-Identifier: Apache-2.0
#include "train/optimizers/adagrad.h"

#include "ops/array/array_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"

namespace tenon {
namespace {

/// A square root is divided by, before any gradient has come.
void CheckAbove0(double initial_value, std::string_view optimizer) {
  if (initial_value > 0) return;
  CurrentBuilding().Fail(
      InvalidArgument(optimizer, ": the initial accumulator value must be above ", "0, found ",
                      initial_value),
      std::source_location::current());
}

}  // namespace

void Adagrad::Prepare(const std::vector<GradientAndVariable>&) {
  CheckAbove0(options_.initial_accumulator_value, name());
}

Node* Adagrad::Apply(const Gradient& gradient, const VariableEntry& variable) {
  return Build({.kind = "Adagrad",
                .slots = {"accumulator"},
                .before = {Scalar(learning_rate_, "learning_rate", variable)}},
               gradient, variable);
}

void AdagradDA::Prepare(const std::vector<GradientAndVariable>&) {
  CheckAbove0(options_.initial_gradient_squared_accumulator_value, name());
  const BuildContext& context = CurrentBuilding();
  const Status s = context.CheckValue(global_step_, "the global step of an AdagradDA");
  if (!s.ok()) context.Fail(s, std::source_location::current());
}

Node* AdagradDA::Apply(const Gradient& gradient, const VariableEntry& variable) {
  const VariableEntry* const counter = FindVariable(global_step_);
  const Output step = counter == nullptr ? global_step_ : Output(counter->value);
  return Build({.kind = "AdagradDA",
                .slots = {"gradient_accumulator", "gradient_squared_accumulator"},
                .after = {Scalar(learning_rate_, "learning_rate", variable),
                          Scalar(options_.l1_regularization_strength, "l1", variable),
                          Scalar(options_.l2_regularization_strength, "l2", variable),
                          Cast(step, DType::kInt64) + 1}},
               gradient, variable);
}

void ProximalAdagrad::Prepare(const std::vector<GradientAndVariable>&) {
  CheckAbove0(options_.initial_accumulator_value, name());
}

Node* ProximalAdagrad::Apply(const Gradient& gradient, const VariableEntry& variable) {
  return Build({.kind = "ProximalAdagrad",
                .slots = {"accumulator"},
                .before = {Scalar(learning_rate_, "learning_rate", variable),
                           Scalar(options_.l1_regularization_strength, "l1", variable),
                           Scalar(options_.l2_regularization_strength, "l2", variable)}},
               gradient, variable);
}

}  // namespace tenon
