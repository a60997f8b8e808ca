// SPDX-License-Identifier: Apache-2.0
#include "runtime/captures/capture_kernels.h"

#include <algorithm>
#include <deque>

#include "runtime/captures/capture_kernel.h"

namespace tenon {
namespace {

/// The members in an order in which they may run. Those that change variables come late, when what
/// has read these has run, so that they need not copy them.
std::vector<Node*> Order(const std::vector<Node*>& nodes) {
  flat_hash_map<const Node*, int> waiting;
  for (Node* n : nodes) waiting[n] = 0;
  for (Node* n : nodes) {
    for (const OutEdge& e : n->out_edges()) {
      if (const auto found = waiting.find(e.dst); found != waiting.end()) ++found->second;
    }
  }
  std::deque<Node*> ready, late;
  const auto push = [&](Node* n) { (ChangesVariables(*n) ? late : ready).push_back(n); };
  for (Node* n : nodes) {
    if (waiting[n] == 0) push(n);
  }
  std::vector<Node*> order;
  while (!ready.empty() || !late.empty()) {
    std::deque<Node*>& queue = ready.empty() ? late : ready;
    Node* const n = queue.front();
    queue.pop_front();
    order.push_back(n);
    for (const OutEdge& e : n->out_edges()) {
      if (const auto found = waiting.find(e.dst); found != waiting.end() && --found->second == 0) {
        push(e.dst);
      }
    }
  }
  return order;
}

/// The variable to which the output refers; null when it is no reference.
Node* VariableBehind(Endpoint output) {
  return IsRef(output.node->output_type(output.index)) ? VariableOf(output) : nullptr;
}

/// Makes one group of nodes.
class CaptureMaker {
 public:
  CaptureMaker(Graph& graph, Device& device, KernelMap& made, const KernelOf& kernel_of)
      : graph_(graph), device_(device), made_(made), kernel_of_(kernel_of) {}

  Status Make(const std::vector<Node*>& nodes);

 private:
  using Place = std::pair<const Node*, int>;
  int NewValue() {
    plan_.is_output.push_back(false);
    return plan_.num_values++;
  }
  bool IsMember(const Node* node) const { return members_.contains(node); }
  void FindInputs();
  StatusOr<int> SourceValue(Endpoint from);
  Status AddMember(Node& node);
  void FindLastUses();
  StatusOr<Node*> AddNode();
  Status Reconnect(Node* group);
  void RemoveMembers();

  Graph& graph_;
  Device& device_;
  KernelMap& made_;
  const KernelOf& kernel_of_;
  std::vector<Node*> order_;
  flat_hash_set<const Node*> members_;
  std::vector<Node*> sources_;  // constants and variables of members
  std::vector<Node*> befores_;  // others that must have run
  std::vector<Endpoint> inputs_;
  flat_hash_map<Place, int> values_;  // by output
  flat_hash_map<Place, int> outputs_;
  DTypeVector output_types_;
  CapturePlan plan_;
};

Status CaptureMaker::Make(const std::vector<Node*>& nodes) {
  members_.insert(nodes.begin(), nodes.end());
  order_ = Order(nodes);
  FindInputs();
  for (Node* n : order_) TENON_RETURN_IF_ERROR(AddMember(*n));
  for (const Node* n : order_) {
    for (const OutEdge& e : n->out_edges()) {
      if (e.output == kControlSlot || IsMember(e.dst) || IsRef(n->output_type(e.output))) continue;
      const auto [it, added] =
          outputs_.try_emplace({n, e.output}, static_cast<int>(plan_.outputs.size()));
      if (!added) continue;
      const int value = values_.at({n, e.output});
      plan_.outputs.push_back(value);
      plan_.is_output[value] = true;
      output_types_.push_back(n->output_type(e.output));
    }
  }
  FindLastUses();
  TENON_ASSIGN_OR_RETURN(Node* const group, AddNode());
  TENON_RETURN_IF_ERROR(Reconnect(group));
  KernelConstruction construction(group->name(), group->op(), group->attrs(), group->input_types(),
                                  group->output_types(), device_);
  made_[group] = std::make_shared<CaptureKernel>(construction, std::move(plan_));
  RemoveMembers();
  return OkStatus();
}

/// What comes in has the first numbers.
void CaptureMaker::FindInputs() {
  for (const Node* n : order_) {
    for (int i = 0; i < n->num_inputs(); ++i) {
      const Endpoint from = n->input(i);
      if (IsMember(from.node)) continue;
      const auto made = made_.find(from.node);
      const bool constant = made != made_.end() && made->second->constant() != nullptr;
      if (constant || from.node->is_variable()) {
        const auto& controls = from.node->control_inputs();
        befores_.insert(befores_.end(), controls.begin(), controls.end());
      } else if (VariableBehind(from) != nullptr) {
        befores_.push_back(from.node);
      } else if (values_.try_emplace({from.node, from.index}, plan_.num_inputs).second) {
        inputs_.push_back(from);
        NewValue();
        ++plan_.num_inputs;
      }
    }
    for (Node* before : n->control_inputs()) {
      if (!IsMember(before)) befores_.push_back(before);
    }
  }
}

/// The value of an output; of a constant or variable it is added.
StatusOr<int> CaptureMaker::SourceValue(Endpoint from) {
  const auto [it, added] = values_.try_emplace({from.node, from.index}, plan_.num_values);
  if (!added) return it->second;
  const int value = NewValue();
  std::shared_ptr<const Kernel>& kernel = made_[from.node];
  if (kernel == nullptr) {
    TENON_ASSIGN_OR_RETURN(kernel, kernel_of_(*from.node));
  }
  if (kernel->constant() != nullptr) {
    plan_.constants.push_back({value, kernel});
    if (from.node->is_variable()) plan_.variables.push_back({value, nullptr, false});
  } else {
    plan_.variables.push_back({value, kernel, false});
  }
  sources_.push_back(from.node);
  return value;
}

Status CaptureMaker::AddMember(Node& node) {
  CaptureMember member;
  member.kernel = made_.at(&node);
  member.output_types = node.output_types();
  for (int i = 0; i < node.num_inputs(); ++i) {
    const DType type = node.input_types()[i];
    // A reference that others hand on is that of the variable, and read when it is needed.
    Node* const variable = VariableBehind(node.input(i));
    const Endpoint from = variable != nullptr ? Endpoint{variable, 0} : node.input(i);
    CaptureMember::Input input;
    TENON_ASSIGN_OR_RETURN(input.value, SourceValue(from));
    input.reads_ref = !IsRef(type) && IsRef(from.node->output_type(from.index));
    if (input.reads_ref) input.name = ToString(from);
    if (IsRef(type) || (type == DType::kResource && ChangesVariables(node))) {
      for (CapturePlan::Variable& v : plan_.variables) v.changes |= v.value == input.value;
    }
    member.inputs.push_back(std::move(input));
  }
  member.first_output = plan_.num_values;
  for (int i = 0; i < node.num_outputs(); ++i) values_[{&node, i}] = NewValue();
  plan_.members.push_back(std::move(member));
  return OkStatus();
}

void CaptureMaker::FindLastUses() {
  std::vector<bool> used = plan_.is_output;
  for (const CapturePlan::Variable& v : plan_.variables) used[v.value] = true;
  for (auto member = plan_.members.rbegin(); member != plan_.members.rend(); ++member) {
    for (auto input = member->inputs.rbegin(); input != member->inputs.rend(); ++input) {
      input->last = !input->reads_ref && !used[input->value];
      used[input->value] = true;
    }
  }
}

StatusOr<Node*> CaptureMaker::AddNode() {
  DTypeVector input_types;
  for (const Endpoint& e : inputs_) {
    input_types.push_back(BaseType(e.node->output_type(e.index)));
  }
  TENON_ASSIGN_OR_RETURN(
      Node* const group,
      graph_.AddNode(graph_.UniqueName("kernel_group"), "_CaptureKernel",
                     {{"Tin", std::move(input_types)}, {"Tout", output_types_}}, inputs_));
  group->set_assigned_device(device_.name());
  for (Node* before : befores_) graph_.AddControlEdge(before, group);
  return group;
}

Status CaptureMaker::Reconnect(Node* group) {
  for (Node* n : order_) {
    const std::vector<OutEdge> edges = n->out_edges();
    for (const OutEdge& e : edges) {
      if (IsMember(e.dst)) continue;
      if (e.output == kControlSlot) {
        graph_.AddControlEdge(group, e.dst);
      } else if (IsRef(n->output_type(e.output))) {
        TENON_RETURN_IF_ERROR(graph_.Connect({VariableOf({n, e.output}), 0}, e.dst, e.input));
        graph_.AddControlEdge(group, e.dst);
      } else {
        TENON_RETURN_IF_ERROR(graph_.Connect({group, outputs_.at({n, e.output})}, e.dst, e.input));
      }
    }
  }
  return OkStatus();
}

void CaptureMaker::RemoveMembers() {
  for (Node* n : order_) made_.erase(n);
  graph_.RemoveNodes(order_);
  std::vector<Node*> unused;
  for (Node* n : sources_) {
    if (n->out_edges().empty()) unused.push_back(n);
  }
  for (Node* n : unused) made_.erase(n);
  graph_.RemoveNodes(unused);
}

}  // namespace

StatusOr<KernelOf> CaptureKernels(absl::Span<const DevicePart> parts, size_t index,
                                  const KernelOf& kernel_of) {
  const auto [graph, device] = parts[index];
  if (device->queue() == nullptr) return kernel_of;
  KernelMap made;
  TENON_ASSIGN_OR_RETURN(const auto groups, FindCaptures(parts, index, kernel_of, &made));
  for (const std::vector<Node*>& nodes : groups) {
    TENON_RETURN_IF_ERROR(CaptureMaker(*graph, *device, made, kernel_of).Make(nodes));
  }
  return [made = std::move(made),
          kernel_of](const Node& node) -> StatusOr<std::shared_ptr<const Kernel>> {
    const auto found = made.find(&node);
    return found != made.end() ? found->second : kernel_of(node);
  };
}

}  // namespace tenon
