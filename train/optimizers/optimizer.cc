// SPDX-License-Identifier: Apache-2.0
#include "train/optimizers/optimizer.h"

#include <algorithm>
#include <cmath>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "train/value_as.h"

namespace tenon {
namespace {

/// The variables that gradients are wanted of.
StatusOr<std::vector<VariableEntry>> TrainedVariables(const Graph& graph,
                                                      const std::vector<Output>& chosen) {
  std::vector<VariableEntry> variables;
  for (const Output& output : chosen) {
    const VariableEntry* const v = FindVariable(output);
    if (v == nullptr) {
      return InvalidArgument("'", output.name(), "', which is to be trained, is of no Variable of ",
                             "the graph");
    }
    variables.push_back(*v);
  }
  if (!chosen.empty()) return variables;
  for (const VariableEntry& v : graph.variables()) {
    if (v.trainable) variables.push_back(v);
  }
  if (variables.empty()) return InvalidArgument("the graph has no trainable variable");
  return variables;
}

std::vector<GradientAndVariable> WithGradients(const std::vector<GradientAndVariable>& all) {
  std::vector<GradientAndVariable> changed;
  for (const GradientAndVariable& g : all) {
    if (g.gradient.exists()) changed.push_back(g);
  }
  return changed;
}

/// The names of the variables, the first few.
std::string Names(const std::vector<GradientAndVariable>& gradients) {
  constexpr size_t kMost = 5;
  std::vector<std::string> names;
  for (const GradientAndVariable& g : gradients) {
    if (names.size() == kMost) break;
    names.push_back(g.variable.ref->name());
  }
  if (names.empty()) return "none";
  return StrCat(Join(names, ", "), gradients.size() > kMost ? ", ..." : "");
}

/// The reference or the handle of a step counter, and what it counts in.
StatusOr<std::pair<Output, DType>> CounterOf(const Output& global_step) {
  if (const VariableEntry* const v = FindVariable(global_step)) {
    return std::pair(Output(v->ref), Output(v->value).dtype());
  }
  if (global_step.dtype() != DType::kResource) return std::pair(global_step, global_step.dtype());
  const DType dtype = global_step.node->attrs().GetOr<DType>("dtype", DType::kInvalid);
  if (dtype != DType::kInvalid) return std::pair(global_step, dtype);
  return InvalidArgument("the global step '", global_step.name(), "' is no variable's handle");
}

/// Whether the number is one that an optimizer can work with. TensorFlow takes all of them.
Status CheckNumber(std::string_view name, double found) {
  const bool is_share = name == "beta1" || name == "beta2" || name == "rho" || name == "decay";
  if (is_share) {
    if (found >= 0 && found < 1) return OkStatus();
    return InvalidArgument(name, " must be in [0, 1), found ", found);
  }
  // A power may be negative, and is in FTRL.
  const bool is_power = name.ends_with("_power");
  if (std::isfinite(found) && (found >= 0 || is_power)) return OkStatus();
  return InvalidArgument(name, " must be ", is_power ? "a finite number" : "at least 0, and finite",
                         ", found ", found);
}

/// Increments the counter, after `updates`.
Node* CountStep(const Output& global_step, const std::string& name,
                const std::vector<Output>& updates, const std::source_location& at) {
  const BuildContext& context = CurrentBuilding();
  Status s = context.CheckValue(global_step, "the global step");
  StatusOr<std::pair<Output, DType>> counter = std::pair(Output(), DType::kInvalid);
  if (s.ok()) {
    counter = CounterOf(global_step);
    s = counter.status();
  }
  if (!s.ok()) {
    context.Fail(s, at);
    return FailedNode();
  }
  const auto& [variable, dtype] = *counter;
  const ColocateWith beside(variable);
  const Output one = Const(1, {.dtype = dtype, .name = StrCat(name, "/value")});
  const ControlDependencies after(updates);
  const bool is_resource = variable.dtype() == DType::kResource;
  return NodeBuilder(is_resource ? "AssignAddVariableOp" : "AssignAdd", name)
      .Input(variable)
      .Input(one)
      .Finish();
}

}  // namespace

Gradient WithoutRepeatedRows(const Gradient& gradient) {
  if (!gradient.is_sparse()) return gradient;
  const auto unique = Unique(gradient.slices.indices);
  const Output rows = Size(unique.y);
  const Output values = UnsortedSegmentSum(gradient.slices.values, unique.idx, rows);
  return IndexedSlices{values, unique.y, gradient.slices.dense_shape};
}

std::vector<GradientAndVariable> Optimizer::ComputeGradients(
    const Output& loss, const ComputeGradientsOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  Status s = context.CheckValue(loss, "the loss");
  auto variables = TrainedVariables(*context.graph, options.variables);
  s.Update(variables.status());
  if (!s.ok()) {
    context.Fail(s, options.location);
    return {};
  }
  std::vector<Output> xs, grad_ys;
  for (const VariableEntry& v : *variables) xs.emplace_back(v.ref);
  if (options.grad_loss.node != nullptr) grad_ys.push_back(options.grad_loss);
  const std::vector<Gradient> gradients =
      SparseGradients(loss, xs, {.grad_ys = grad_ys, .allow_unconnected = true});
  std::vector<GradientAndVariable> result;
  for (size_t i = 0; i < xs.size(); ++i) result.push_back({gradients[i], (*variables)[i]});
  return Combine(std::move(result));
}

Node* Optimizer::ApplyGradients(const std::vector<GradientAndVariable>& gradients,
                                const ApplyGradientsOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  const std::vector<GradientAndVariable> changed = WithGradients(gradients);
  if (changed.empty()) {
    context.Fail(InvalidArgument("no variable has a gradient, of those found: ", Names(gradients)),
                 options.location);
  }
  if (!context.graph->error().ok()) return FailedNode();
  MakeVariables(changed);
  if (!context.graph->error().ok()) return FailedNode();
  const std::string name = UnusedScope(options.name.empty() ? name_ : options.name);
  std::vector<Output> updates;
  {
    const NameScope scope(name);
    updates = Finish(Updates(changed));
  }
  if (!context.graph->error().ok()) return FailedNode();
  if (options.global_step.node != nullptr) {
    return CountStep(options.global_step, name, updates, options.location);
  }
  const ControlDependencies after(updates);
  return NoOp({.name = name});
}

Node* Optimizer::Minimize(const Output& loss, const MinimizeOptions& options) {
  const CalledFrom caller(options.location);
  const std::vector<GradientAndVariable> gradients =
      ComputeGradients(loss, {.variables = options.variables});
  const BuildContext& context = CurrentBuilding();
  if (WithGradients(gradients).empty()) {
    context.Fail(InvalidArgument("'", loss.name(), "' depends through differentiable ops on no ",
                                 "variable of: ", Names(gradients)),
                 options.location);
  }
  return ApplyGradients(gradients, {.global_step = options.global_step, .name = options.name});
}

void Optimizer::MakeVariables(const std::vector<GradientAndVariable>& gradients) {
  for (const GradientAndVariable& g : gradients) {
    const auto dims = Output(g.variable.value).shape().dims();
    for (const Slot& slot : slots_) MakeSlot(g.variable, slot, {dims.begin(), dims.end()});
  }
  Prepare(gradients);
}

std::vector<Output> Optimizer::Updates(const std::vector<GradientAndVariable>& gradients) {
  const std::string& prefix = CurrentBuilding().prefix;
  scope_ = prefix.substr(0, prefix.size() - 1);
  constants_.clear();
  std::vector<Output> updates;
  for (const GradientAndVariable& g : gradients) {
    const NameScope scope(StrCat("update_", g.variable.ref->name()));
    const ColocateWith beside(g.variable.ref);
    updates.emplace_back(
        Apply(TakesRepeatedRows() ? g.gradient : WithoutRepeatedRows(g.gradient), g.variable));
  }
  return updates;
}

void Optimizer::Prepare(const std::vector<GradientAndVariable>& gradients) { (void)gradients; }

Output Optimizer::Scalar(const Input& value, std::string_view name, const VariableEntry& variable) {
  if (const std::optional<double> number = KnownNumber(value)) {
    if (const Status s = CheckNumber(name, *number); !s.ok()) {
      CurrentBuilding().Fail(Annotate(s, name_), value.location());
    }
  }
  const DType dtype = Output(variable.value).dtype();
  if (value.output() != nullptr) return ValueAs(value, dtype);
  const std::string& device = variable.ref->requested_device();
  Output& constant = constants_[StrCat(name, " ", ToString(dtype), " ", device)];
  if (!constant.exists()) {
    const AtRoot root;
    const NameScope scope(scope_);
    const DeviceScope on(device);
    constant = value.literal() == nullptr
                   ? ValueAs(value, dtype)
                   : Const(value, {.dtype = dtype, .name = std::string(name)});
  }
  return constant;
}

Node* Optimizer::Build(const UpdateOp& op, const Gradient& gradient,
                       const VariableEntry& variable) const {
  NodeBuilder builder(StrCat(variable.is_resource() ? "Resource" : "",
                             gradient.is_sparse() ? "Sparse" : "", "Apply", op.kind));
  builder.Input(Output(variable.ref));
  for (const std::string& slot : op.slots) {
    builder.Input(Output(SlotOf(variable, slot).ref));
  }
  for (const Output& scalar : op.before) builder.Input(scalar);
  builder.Input(gradient.values());
  if (gradient.is_sparse()) builder.Input(gradient.slices.indices);
  for (const Output& scalar : op.after) builder.Input(scalar);
  if (op.use_nesterov) builder.Attr("use_nesterov", true);
  return builder.Finish();
}

void Optimizer::MakeSlot(const VariableEntry& variable, const Slot& slot,
                         const std::vector<int64_t>& dims) {
  auto& made = made_[slot.name];
  if (made.contains(variable.ref)) return;
  const AtRoot root;
  const NoControlDependencies always;
  const ColocateWith beside(variable.ref);
  Graph& graph = *CurrentBuilding().graph;
  const std::string& whole = variable.ref->name();
  const std::string name = graph.UniqueName(StrCat(whole, "/", name_));
  const Output value = variable.value;
  Output initial;
  {
    const NameScope scope(StrCat(name, "/Initializer"));
    const Output element = Const(slot.initial_value, {.dtype = value.dtype()});
    initial = Fill(dims, element, {.name = slot.initial_value == 0 ? "zeros" : "constant"});
  }
  VariableOptions options{.trainable = false, .resource = variable.is_resource()};
  options.part = variable.part;
  if (options.part) {
    options.part->name += name.substr(whole.size());
    for (auto* sizes : {&options.part->shape, &options.part->begin, &options.part->extent}) {
      sizes->resize(dims.size());
    }
  }
  const Variable made_slot(name, initial, options);
  if (const VariableEntry* nodes = FindVariable(made_slot.ref()))
    made.emplace(variable.ref, *nodes);
}

const VariableEntry& Optimizer::OwnVariable(std::string_view name, const Input& initial_value,
                                            const VariableEntry& beside, DType dtype) {
  const auto found = own_.find(std::string(name));
  if (found != own_.end()) return found->second;
  const NoControlDependencies always;
  const ColocateWith colocated(beside.ref);
  const Output initial =
      initial_value.literal() == nullptr
          ? Const(initial_value)
          : Const(initial_value, {.dtype = dtype, .name = StrCat(name, "/initial_value")});
  const Variable variable(name, initial, {.trainable = false, .resource = beside.is_resource()});
  const VariableEntry* const nodes = FindVariable(variable.ref());
  return own_[std::string(name)] = nodes == nullptr ? VariableEntry() : *nodes;
}

const VariableEntry& Optimizer::SlotOf(const VariableEntry& variable, std::string_view slot) const {
  return made_.find(slot)->second.at(variable.ref);
}

Variable Optimizer::GetSlot(const Output& variable, std::string_view slot) const {
  const VariableEntry* const v = FindVariable(variable);
  const auto slots = made_.find(slot);
  if (v == nullptr || slots == made_.end()) return Variable();
  const auto found = slots->second.find(v->ref);
  return found == slots->second.end() ? Variable() : Variable(found->second);
}

std::vector<std::string> Optimizer::SlotNames() const {
  std::vector<std::string> names;
  for (const auto& [name, variables] : made_) names.push_back(name);
  return names;
}

std::vector<VariableEntry> Optimizer::variables() const {
  std::vector<VariableEntry> all;
  for (const auto& [name, variables] : made_) {
    for (const auto& [of, slot] : variables) all.push_back(slot);
  }
  for (const auto& [name, variable] : own_) all.push_back(variable);
  std::sort(all.begin(), all.end(), [](const VariableEntry& a, const VariableEntry& b) {
    return a.ref->name() < b.ref->name();
  });
  return all;
}

}  // namespace tenon
