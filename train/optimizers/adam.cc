// SPDX-License-Identifier: Apache-2.0
#include "train/optimizers/adam.h"

#include <algorithm>

#include "ops/array/array_ops.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/state/state_ops.h"
#include "train/value_as.h"

namespace tenon {
namespace {

/// Lets a moment decay, then adds to its rows: the moment after that.
Output Moved(const VariableEntry& moment, const Output& decay, const Output& indices,
             const Output& addend) {
  const Output before = moment.value;
  Node* const decayed = ChangeVariable(moment, "Assign", before * decay);
  const ControlDependencies first({decayed});
  if (!moment.is_resource()) return ScatterAdd(moment.ref, indices, addend);
  const ControlDependencies then({ResourceScatterAdd(moment.ref, indices, addend)});
  return ReadVariableOp(moment.ref, before.dtype());
}

}  // namespace

void Adam::Prepare(const std::vector<GradientAndVariable>& gradients) {
  // The first of the names as TensorFlow sorts them: those of tensors. All replicas agree on it.
  const auto tensor = [](const GradientAndVariable& g) {
    return StrCat(g.variable.ref->name(), ":0");
  };
  const VariableEntry& first =
      std::min_element(gradients.begin(), gradients.end(), [&](const auto& a, const auto& b) {
        return tensor(a) < tensor(b);
      })->variable;
  OwnVariable("beta1_power", options_.beta1, first);
  OwnVariable("beta2_power", options_.beta2, first);
}

Node* Adam::Apply(const Gradient& gradient, const VariableEntry& variable) {
  if (gradient.is_sparse()) return ApplyRows(gradient.slices, variable);
  const Output value = variable.value;
  return Build({.kind = "Adam",
                .slots = {"m", "v"},
                .before = {ValueAs(OwnVariable("beta1_power").value, value.dtype()),
                           ValueAs(OwnVariable("beta2_power").value, value.dtype()),
                           Scalar(learning_rate_, "learning_rate", variable),
                           Scalar(options_.beta1, "beta1", variable),
                           Scalar(options_.beta2, "beta2", variable),
                           Scalar(options_.epsilon, "epsilon", variable)}},
               gradient, variable);
}

Node* Adam::ApplyRows(const IndexedSlices& gradient, const VariableEntry& variable) {
  const Output value = variable.value, g = gradient.values;
  const Output beta1_power = ValueAs(OwnVariable("beta1_power").value, value.dtype());
  const Output beta2_power = ValueAs(OwnVariable("beta2_power").value, value.dtype());
  const Output beta1 = Scalar(options_.beta1, "beta1", variable);
  const Output beta2 = Scalar(options_.beta2, "beta2", variable);
  const Output rate =
      Scalar(learning_rate_, "learning_rate", variable) * Sqrt(1 - beta2_power) / (1 - beta1_power);
  const Output m = Moved(SlotOf(variable, "m"), beta1, gradient.indices, g * (1 - beta1));
  const Output v = Moved(SlotOf(variable, "v"), beta2, gradient.indices, g * g * (1 - beta2));
  const Output epsilon = Scalar(options_.epsilon, "epsilon", variable);
  return ChangeVariable(variable, "AssignSub", rate * m / (Sqrt(v) + epsilon));
}

std::vector<Output> Adam::Finish(std::vector<Output> updates) {
  // The powers are read before the updates, and change after them.
  const auto advance = [&](std::string_view name, const Input& beta, std::string_view beta_name) {
    const VariableEntry& power = OwnVariable(name);
    const ControlDependencies after(updates);
    const ColocateWith beside(power.ref);
    const Output next = Output(power.value) * Scalar(beta, beta_name, power);
    return ChangeVariable(power, "Assign", next);
  };
  const Output beta1_power = advance("beta1_power", options_.beta1, "beta1");
  const Output beta2_power = advance("beta2_power", options_.beta2, "beta2");
  updates.push_back(beta1_power);
  updates.push_back(beta2_power);
  return updates;
}

Node* AdamW::Apply(const Gradient& gradient, const VariableEntry& variable) {
  const bool decays = std::none_of(options_.without_decay.begin(), options_.without_decay.end(),
                                   [&](const Output& other) {
                                     const VariableEntry* const v = FindVariable(other);
                                     return v != nullptr && v->ref == variable.ref;
                                   });
  if (!decays) return Adam::Apply(gradient, variable);
  // The gradient is of the variable as it was.
  const ControlDependencies first({gradient.values()});
  const Output decay = Scalar(learning_rate_, "learning_rate", variable) *
                       Scalar(options_.weight_decay, "weight_decay", variable);
  const ControlDependencies then(
      {ChangeVariable(variable, "AssignSub", Output(variable.value) * decay)});
  return Adam::Apply(gradient, variable);
}

}  // namespace tenon
