// SPDX-License-Identifier: Apache-2.0
#include "train/optimizers/moving_averages.h"

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/state/state_ops.h"
#include "train/value_as.h"

namespace tenon {
namespace {

/// The variables to be averaged.
StatusOr<std::vector<VariableEntry>> Averaged(const std::vector<Output>& chosen) {
  std::vector<VariableEntry> variables;
  for (const Output& output : chosen) {
    const VariableEntry* const v = FindVariable(output);
    if (v == nullptr) {
      return InvalidArgument("'", output.name(), "', which is to be averaged, is of no Variable ",
                             "of the graph");
    }
    variables.push_back(*v);
  }
  if (chosen.empty()) {
    for (const VariableEntry& v : CurrentBuilding().graph->variables()) {
      if (v.trainable) variables.push_back(v);
    }
  }
  for (const VariableEntry& v : variables) {
    if (IsFloating(Output(v.value).dtype())) continue;
    return InvalidArgument("averages are of floating point, '", v.ref->name(), "' is ",
                           ToString(Output(v.value).dtype()));
  }
  return variables;
}

}  // namespace

void ExponentialMovingAverage::MakeAverage(const VariableEntry& variable) {
  const AtRoot root;
  const NoControlDependencies always;
  const ColocateWith beside(variable.ref);
  const std::string& whole = variable.ref->name();
  const std::string name = CurrentBuilding().graph->UniqueName(StrCat(whole, "/", options_.name));
  Output initial;
  {
    // The variable may have been trained, or restored, before the average is initialised.
    const NameScope scope(StrCat(name, "/Initializer"));
    const Output ready = variable.is_resource() ? VarIsInitializedOp(variable.ref)
                                                : IsVariableInitialized(variable.ref);
    const Output first = variable.initializer->input(1);
    initial = Cond(
        ready, [&] { return ReadVariable(variable); }, [&] { return Identity(first); });
  }
  VariableOptions options{.trainable = false, .resource = variable.is_resource()};
  options.part = variable.part;
  if (options.part) options.part->name += name.substr(whole.size());
  const Variable average(name, initial, options);
  if (const VariableEntry* v = FindVariable(average.ref())) averages_.emplace(variable.ref, *v);
}

Node* ExponentialMovingAverage::Apply(const std::vector<Output>& variables,
                                      const std::source_location& at) {
  const CalledFrom caller(at);
  const BuildContext& context = CurrentBuilding();
  const auto averaged = Averaged(variables);
  if (!averaged.ok()) context.Fail(averaged.status(), at);
  if (!context.graph->error().ok()) return FailedNode();
  for (const VariableEntry& v : *averaged) {
    if (!averages_.contains(v.ref)) MakeAverage(v);
  }
  if (!context.graph->error().ok()) return FailedNode();
  const std::string name = UnusedScope(options_.name);
  std::vector<Output> updates;
  {
    const NameScope scope(name);
    Output decay = ValueAs(decay_, DType::kFloat);
    if (options_.num_updates.node != nullptr) {
      const Output updates_so_far = Cast(options_.num_updates, DType::kFloat);
      decay = Minimum(decay, (1 + updates_so_far) / (10 + updates_so_far));
    }
    const Output rate = 1 - decay;
    for (const VariableEntry& v : *averaged) {
      const NameScope update("AssignMovingAvg");
      const ColocateWith beside(v.ref);
      const VariableEntry& average = averages_.at(v.ref);
      const Output own_rate = ValueAs(rate, Output(v.value).dtype());
      updates.emplace_back(ChangeVariable(average, "AssignSub",
                                          (ReadVariable(average) - ReadVariable(v)) * own_rate));
    }
  }
  const ControlDependencies after(updates);
  return NoOp({.name = name});
}

Variable ExponentialMovingAverage::Average(const Output& variable) const {
  const VariableEntry* const v = FindVariable(variable);
  const auto found = averages_.find(v == nullptr ? nullptr : v->ref);
  return found == averages_.end() ? Variable() : Variable(found->second);
}

std::string ExponentialMovingAverage::AverageName(const Output& variable) const {
  const VariableEntry* const v = FindVariable(variable);
  if (v == nullptr) return "";
  const auto found = averages_.find(v->ref);
  if (found != averages_.end()) return found->second.ref->name();
  return CurrentBuilding().graph->UniqueName(StrCat(v->ref->name(), "/", options_.name));
}

std::vector<std::pair<std::string, Output>> ExponentialMovingAverage::VariablesToRestore() const {
  flat_hash_set<const Node*> averages;
  for (const auto& [of, average] : averages_) averages.insert(average.ref);
  std::vector<std::pair<std::string, Output>> restored;
  for (const VariableEntry& v : CurrentBuilding().graph->variables()) {
    if (v.local || averages.contains(v.ref)) continue;
    const bool averaged = v.trainable || averages_.contains(v.ref);
    restored.emplace_back(averaged ? AverageName(v.ref) : v.ref->name(), v.ref);
  }
  return restored;
}

}  // namespace tenon
