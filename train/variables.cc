// SPDX-License-Identifier: Apache-2.0
#include "train/variables.h"

#include "ops/array/array_basic_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/control_flow/flow_scope.h"
#include "ops/math/math_basic_ops.h"
#include "ops/state/state_ops.h"

namespace tenon {
namespace {

Node* InitializeAll(bool local, const OpOptions& options) {
  std::vector<Output> initializers;
  for (const VariableEntry& v : CurrentBuilding(options.location).graph->variables()) {
    if (v.local == local) initializers.emplace_back(v.initializer);
  }
  const ControlDependencies after(initializers);
  return NoOp(options);
}

}  // namespace

Variable::Variable(std::string_view name, const Input& initial_value,
                   const VariableOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  const Output* const given = initial_value.output();
  if (context.flow != nullptr && given != nullptr && given->exists() &&
      context.flow->Bring(*given) == Endpoint(*given)) {
    context.Fail(InvalidArgument("the initial value of variable '", name, "', '", given->name(),
                                 "', is made within a branch or loop, and the variable outside: "
                                 "make the value before, or under NoControlDependencies"),
                 options.location);
    return;
  }
  const NoControlDependencies always;
  const Output initial = Const(initial_value);
  if (!context.graph->error().ok()) return;
  if (!initial.shape().IsFullyKnown()) {
    context.Fail(
        InvalidArgument("the initial value of variable '", name, "' must have a known shape; '",
                        initial.name(), "' has ", initial.shape().ToString()),
        options.location);
    return;
  }
  if (options.resource) {
    // TensorFlow's name for the resource is that of the node, which is made unique first.
    const std::string unique =
        context.graph->UniqueName(StrCat(context.prefix, name)).substr(context.prefix.size());
    ref_ = VarHandleOp(initial.dtype(), initial.shape(),
                       {.shared_name = StrCat(context.prefix, unique), .name = unique});
  } else {
    ref_ = VariableV2(initial.shape(), initial.dtype(), {.name = std::string(name)});
  }
  if (!ref_.exists()) return;
  const AtRoot root;
  const NameScope scope(ref_.name());
  const DeviceScope device(ref_.node->requested_device());
  const ColocateWith beside(ref_);
  VariableEntry nodes{ref_.node,     nullptr,     nullptr, options.trainable && !options.local,
                      options.local, options.part};
  Node* const initializer = ChangeVariable(nodes, "Assign", initial, {.name = "Assign"});
  value_ = options.resource ? ReadVariableOp(ref_, initial.dtype(), {.name = "Read/ReadVariableOp"})
                            : Identity(ref_, {.name = "read"});
  if (!value_.exists()) return;
  nodes.value = value_.node;
  nodes.initializer = initializer;
  context.graph->variables().push_back(std::move(nodes));
}

const VariableEntry* FindVariable(const Output& variable) {
  for (const VariableEntry& v : CurrentBuilding().graph->variables()) {
    if (v.ref == variable.node || v.value == variable.node) return &v;
  }
  return nullptr;
}

Output ReadVariable(const VariableEntry& variable) {
  if (!variable.is_resource()) return Identity(variable.ref);
  return ReadVariableOp(variable.ref, Output(variable.value).dtype());
}

Node* ChangeVariable(const VariableEntry& variable, std::string_view op, const Input& value,
                     const OpOptions& options) {
  const std::string name = variable.is_resource() ? StrCat(op, "VariableOp") : std::string(op);
  NodeBuilder node(name, options.name, options.location);
  node.Input(Output(variable.ref)).Input(value);
  // A handle does not tell what a literal is to be.
  const DType dtype = variable.ref->attrs().GetOr("dtype", DType::kInvalid);
  if (variable.is_resource()) node.Attr("dtype", dtype);
  return node.Finish();
}

Node* GlobalVariablesInitializer(const OpOptions& options) { return InitializeAll(false, options); }

Node* LocalVariablesInitializer(const OpOptions& options) { return InitializeAll(true, options); }

Output ReportUninitializedVariables(bool local, const OpOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  const NameScope scope("report_uninitialized_variables");
  std::vector<Output> initialized;
  std::vector<std::string> names;
  for (const VariableEntry& v : context.graph->variables()) {
    if (v.local != local) continue;
    const DeviceScope device(v.ref->requested_device());
    initialized.push_back(v.is_resource() ? VarIsInitializedOp(v.ref)
                                          : IsVariableInitialized(v.ref));
    names.push_back(v.ref->name());
  }
  if (names.empty()) return Const(Tensor(DType::kString, Shape({0})), {.name = options.name});
  const Output missing = LogicalNot(Pack(initialized));
  const Output where = Squeeze(Where(missing), {.squeeze_dims = {1}});
  return GatherV2(names, where, 0, {.name = options.name});
}

Variable GlobalStep(const std::source_location& at) {
  const CalledFrom caller(at);
  const OutsideFlowScopes names;
  const NoControlDependencies always;
  Graph& graph = *CurrentBuilding().graph;
  std::vector<Endpoint>& known = graph.Collection("global_step");
  if (!known.empty()) {
    if (const VariableEntry* v = FindVariable(known[0])) return Variable(*v);
  }
  const Variable step("global_step", Const(int64_t{0}, {.dtype = DType::kInt64}),
                      {.trainable = false});
  if (step.ref().exists()) graph.Collection("global_step").push_back(step.ref());
  return step;
}

}  // namespace tenon
