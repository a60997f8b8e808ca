// SPDX-License-Identifier: Apache-2.0
#include "train/variables.h"

#include "ops/array/array_basic_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_basic_ops.h"
#include "ops/state/state_ops.h"

namespace tenon {

Variable::Variable(std::string_view name, const Input& initial_value,
                   const VariableOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  const NoControlDependencies always;
  const Output initial = Const(initial_value);
  if (!context.graph->error().ok()) return;
  if (!initial.shape().IsFullyKnown()) {
    context.Fail(InvalidArgument("the initial value of variable '", name, "' must have a known shape; '",
                                 initial.name(), "' has ", initial.shape().ToString()),
                 options.location);
    return;
  }
  ref_ = VariableV2(initial.shape(), initial.dtype(), {.name = std::string(name)});
  if (!ref_.exists()) return;
  const AtRoot root;
  const NameScope scope(ref_.name());
  const DeviceScope device(ref_.node->requested_device());
  const ColocateWith beside(ref_);
  const Output initializer = Assign(ref_, initial, {.name = "Assign"});
  value_ = Identity(ref_, {.name = "read"});
  if (!value_.exists()) return;
  context.graph->variables().push_back(
      {ref_.node, value_.node, initializer.node, options.trainable});
}

Node* GlobalVariablesInitializer(const OpOptions& options) {
  std::vector<Output> initializers;
  for (const VariableNodes& v : CurrentBuilding(options.location).graph->variables()) {
    initializers.emplace_back(v.initializer);
  }
  const ControlDependencies after(initializers);
  return NoOp(options);
}

Output ReportUninitializedVariables(const OpOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  if (context.graph->variables().empty()) {
    context.Fail(InvalidArgument("the graph has no variable"), options.location);
    return Output();
  }
  const NameScope scope("report_uninitialized_variables");
  std::vector<Output> initialized;
  std::vector<std::string> names;
  for (const VariableNodes& v : context.graph->variables()) {
    const DeviceScope device(v.ref->requested_device());
    initialized.push_back(IsVariableInitialized(v.ref));
    names.push_back(v.ref->name());
  }
  const Output missing = LogicalNot(Pack(initialized));
  const Output where = Squeeze(Where(missing), {.squeeze_dims = {1}});
  return GatherV2(names, where, 0, {.name = options.name});
}

}  // namespace tenon
