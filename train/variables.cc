// SPDX-License-Identifier: Apache-2.0
#include "train/variables.h"

#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/state_ops.h"

namespace tenon {

Output VariableSet::Add(const Scope& scope, Output initial_value, bool trainable) {
  if (!scope.ok()) return Output();
  if (!initial_value.shape().IsFullyKnown()) {
    scope.Fail(InvalidArgument("a variable's initial value must have a known shape; '",
                               initial_value.name(), "' has ", initial_value.shape().ToString()));
    return Output();
  }
  ModelVariable v;
  v.trainable = trainable;
  v.ref = VariableV2(scope, initial_value.shape(), initial_value.dtype());
  if (!scope.ok()) return Output();
  const Scope placed = scope.AtRoot()
                           .WithPrefix(v.name())
                           .WithDevice(v.ref.node->requested_device())
                           .ColocatedWith(v.ref);
  v.initializer = Assign(placed.WithName("Assign"), v.ref, initial_value).node;
  v.value = Identity(placed.WithName("read"), v.ref);
  if (!scope.ok()) return Output();
  variables_.push_back(v);
  return v.value;
}

const ModelVariable* VariableSet::Find(const Output& value) const {
  for (const ModelVariable& v : variables_) {
    if (v.value == value || v.ref == value) return &v;
  }
  return nullptr;
}

std::vector<ModelVariable> VariableSet::trainable() const {
  std::vector<ModelVariable> result;
  for (const ModelVariable& v : variables_) {
    if (v.trainable) result.push_back(v);
  }
  return result;
}

Node* VariableSet::Initializer(const Scope& scope) const {
  std::vector<Output> initializers;
  for (const ModelVariable& v : variables_) initializers.emplace_back(v.initializer);
  return NoOp(scope.WithControlDependencies(initializers));
}

Output VariableSet::ReportUninitialized(const Scope& scope) const {
  const Scope s = scope.WithPrefix("report_uninitialized_variables");
  std::vector<Output> initialized;
  std::vector<std::string> names;
  for (const ModelVariable& v : variables_) {
    initialized.push_back(IsVariableInitialized(
        s.WithDevice(v.ref.node->requested_device()), v.ref));
    names.push_back(v.name());
  }
  const Output missing = LogicalNot(s, Pack(s, initialized));
  const Output where = Squeeze(s, Where(s, missing), {1});
  return GatherV2(s, Const(s, names), where, Const(s, 0));
}

}  // namespace tenon
