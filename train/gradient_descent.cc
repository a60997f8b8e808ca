// SPDX-License-Identifier: Apache-2.0
#include "train/gradient_descent.h"

#include "core/gradients.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/array/array_basic_ops.h"
#include "ops/array/constants.h"
#include "ops/state/state_ops.h"
#include "ops/training/training_ops.h"

namespace tenon {

Node* GradientDescent::Minimize(const Output& loss, const MinimizeOptions& options) const {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  std::vector<VariableNodes> trained;
  std::vector<Output> values;
  for (const VariableNodes& v : context.graph->variables()) {
    if (!v.trainable) continue;
    trained.push_back(v);
    values.emplace_back(v.value);
  }
  Status s = context.CheckValue(loss, "the loss");
  if (trained.empty()) s.Update(InvalidArgument("the graph has no trainable variable"));
  if (!s.ok()) context.Fail(s, options.location);
  const std::vector<Output> gradients = Gradients(loss, values);
  std::vector<Output> updates;
  for (size_t i = 0; i < trained.size(); ++i) {
    // Beside the variable, the rate included: it need not travel in every step.
    const AtRoot root;
    const NameScope scope(StrCat(name_, "/update_", trained[i].ref->name()));
    const DeviceScope device(trained[i].ref->requested_device());
    const ColocateWith beside(trained[i].ref);
    const Output rate = Const(learning_rate_, {.dtype = Output(trained[i].ref).dtype(),
                                               .name = "learning_rate"});
    updates.push_back(ApplyGradientDescent(trained[i].ref, rate, gradients[i]));
  }
  if (!options.global_step.exists()) {
    const ControlDependencies after(updates);
    return NoOp({.name = name_});
  }
  const AtRoot root;
  const DeviceScope device(options.global_step.node->requested_device());
  const Output one =
      Const(1, {.dtype = options.global_step.dtype(), .name = StrCat(name_, "/value")});
  const ControlDependencies after(updates);
  const Output step = AssignAdd(options.global_step, one, {.name = name_});
  return step.exists() ? step.node : FailedNode();
}

}  // namespace tenon
