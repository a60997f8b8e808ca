// SPDX-License-Identifier: Apache-2.0
#include "runtime/groups/grouping.h"

#include <algorithm>
#include <deque>
#include <map>

#include "core/flow_kind.h"
#include "runtime/groups/kernel_group.h"

namespace tenon {
namespace {

/// Recording fewer kernels of the device saves nothing.
constexpr int kFewestKernels = 4;

bool IsVariable(const Node& node) {
  return node.op() == "VariableV2" || node.op() == "Variable" || node.op() == "VarHandleOp";
}

/// Whether the node only reads the variable that a resource handle names.
bool OnlyReads(const Node& node) {
  return node.op() == "ReadVariableOp" || node.op() == "ResourceGather" ||
         node.op() == "ResourceGatherNd" || node.op() == "VariableShape";
}

/// Whether what it sends leaves the task.
StatusOr<bool> SendsToOtherTasks(const Node& node) {
  if (FlowKindOf(node) != FlowKind::kTransfer || node.num_inputs() == 0) return false;
  TENON_ASSIGN_OR_RETURN(const auto from, node.attrs().Get<std::string>("send_device"));
  TENON_ASSIGN_OR_RETURN(const auto to, node.attrs().Get<std::string>("recv_device"));
  const auto task = [](const std::string& device) {
    return device.substr(0, device.find("/device:"));
  };
  return task(from) != task(to);
}

bool ChangesVariables(const Node& node) {
  const auto& types = node.input_types();
  if (std::any_of(types.begin(), types.end(), IsRef)) return true;
  return !OnlyReads(node) && std::count(types.begin(), types.end(), DType::kResource) > 0;
}

/// The variable to which a reference refers, or null: ops hand on that of their first input.
Node* VariableOf(Endpoint reference) {
  while (!IsVariable(*reference.node)) {
    if (reference.node->num_inputs() == 0 || !IsRef(reference.node->input_types()[0])) {
      return nullptr;
    }
    reference = reference.node->input(0);
  }
  return reference.node;
}

/// Whether all references and handles that the node takes are of variables.
bool UsesVariablesOnly(const Node& node) {
  for (int i = 0; i < node.num_inputs(); ++i) {
    const DType type = node.input_types()[i];
    if (type == DType::kVariant) return false;
    if (IsRef(type) && VariableOf(node.input(i)) == nullptr) return false;
    if (type == DType::kResource && !IsVariable(*node.input(i).node)) return false;
  }
  return true;
}

using Kernels = std::function<StatusOr<std::shared_ptr<const Kernel>>(const Node&)>;

/// Which nodes of a part make groups. A node's stage is the number of groups that must be over
/// before it can run: those of one stage that can be in a group are one.
class Grouping {
 public:
  Grouping(Graph& graph, Device& device, const Kernels& kernel_of, KernelMap& made)
      : graph_(graph),
        device_(device),
        kernel_of_(kernel_of),
        made_(made),
        marks_(graph.num_ids()) {}

  /// The nodes of each group.
  StatusOr<std::vector<std::vector<Node*>>> Find() {
    std::vector<std::vector<Node*>> groups;
    for (const Node* n : graph_.nodes()) {
      const FlowKind flow = FlowKindOf(*n);
      if (flow != FlowKind::kPlain && flow != FlowKind::kTransfer) return groups;
      TENON_ASSIGN_OR_RETURN(const bool sends, SendsToOtherTasks(*n));
      if (sends) return groups;
    }
    TENON_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    for (Node* n : order) TENON_RETURN_IF_ERROR(MarkNode(*n));
    std::map<int, std::vector<Node*>> stages;
    std::map<int, int> device_kernels;
    for (Node* n : order) {
      const Mark& mark = marks_[n->id()];
      if (!mark.member) continue;
      stages[mark.stage].push_back(n);
      device_kernels[mark.stage] += mark.on_device;
    }
    for (auto& [stage, nodes] : stages) {
      if (device_kernels[stage] >= kFewestKernels) groups.push_back(std::move(nodes));
    }
    return groups;
  }

 private:
  struct Mark {
    bool member = false;
    bool on_device = false;  // it queues work
    int stage = 0;
  };

  Status MarkNode(Node& node);
  /// Whether the kernel could be in a group, and by itself or only behind others of it.
  enum class Fit : uint8_t { kNo, kBehind, kYes };
  StatusOr<Fit> FitOf(const Node& node);

  Graph& graph_;
  Device& device_;
  const Kernels& kernel_of_;
  KernelMap& made_;
  std::vector<Mark> marks_;  // by node id
};

StatusOr<Grouping::Fit> Grouping::FitOf(const Node& node) {
  if (node.op() == "_Arg" || node.op() == "_Retval" || IsVariable(node)) return Fit::kNo;
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<const Kernel> kernel, kernel_of_(node));
  const bool out = kernel->is_async() || kernel->constant() != nullptr ||
                   FlowKindOf(node) == FlowKind::kTransfer;
  made_[&node] = std::move(kernel);
  if (out || !UsesVariablesOnly(node)) return Fit::kNo;
  const auto& types = node.input_types();
  const bool has_variables = std::any_of(
      types.begin(), types.end(), [](DType t) { return IsRef(t) || t == DType::kResource; });
  if (node.is_stateful() && !has_variables) return Fit::kNo;
  const KernelMemory memory = node.registration().MemoryOn(device_.kind(), node.attrs());
  if (memory == KernelMemory::kHost) return has_variables ? Fit::kNo : Fit::kBehind;
  if (memory == KernelMemory::kAny && !has_variables) return Fit::kBehind;
  // It makes a tensor the variable's value, which is nothing for the device to do.
  if (memory == KernelMemory::kAny && ChangesVariables(node)) return Fit::kNo;
  // What comes from the host is copied before: a recording holds the host's values as they are.
  return node.op() == "_CopyToDevice" ? Fit::kBehind : Fit::kYes;
}

Status Grouping::MarkNode(Node& node) {
  Mark& mark = marks_[node.id()];
  TENON_ASSIGN_OR_RETURN(const Fit fit, FitOf(node));
  bool behind = false;
  int after = 0;  // the stage in a group; else one more behind its members
  int outside = 0;
  const auto see = [&](const Node* from) {
    const Mark& before = marks_[from->id()];
    after = std::max(after, before.stage);
    outside = std::max(outside, before.stage + (before.member ? 1 : 0));
    behind |= before.member;
  };
  for (const Node* n : node.control_inputs()) see(n);
  if (node.num_inputs() > 0) behind = false;  // it is not one of them if it only waits for them
  for (int i = 0; i < node.num_inputs(); ++i) see(node.input(i).node);
  mark.member = fit == Fit::kYes || (fit == Fit::kBehind && behind);
  mark.stage = mark.member ? after : outside;
  mark.on_device = fit == Fit::kYes &&
                   node.registration().MemoryOn(device_.kind(), node.attrs()) == KernelMemory::kDevice;
  return OkStatus();
}

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

/// Makes one group of nodes.
class GroupMaker {
 public:
  GroupMaker(Graph& graph, Device& device, KernelMap& made, const Kernels& kernel_of)
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
  const Kernels& kernel_of_;
  std::vector<Node*> order_;
  flat_hash_set<const Node*> members_;
  std::vector<Node*> sources_;   // constants and variables of members
  std::vector<Node*> befores_;   // others that must have run
  std::vector<Endpoint> inputs_;
  flat_hash_map<Place, int> values_;  // by output
  flat_hash_map<Place, int> outputs_;
  DTypeVector output_types_;
  GroupPlan plan_;
};

Status GroupMaker::Make(const std::vector<Node*>& nodes) {
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
  KernelConstruction construction(group->name(), group->op(), group->attrs(),
                                  group->input_types(), group->output_types(), device_);
  made_[group] = std::make_shared<KernelGroup>(construction, std::move(plan_));
  RemoveMembers();
  return OkStatus();
}

/// What comes in has the first numbers.
void GroupMaker::FindInputs() {
  for (const Node* n : order_) {
    for (int i = 0; i < n->num_inputs(); ++i) {
      const Endpoint from = n->input(i);
      if (IsMember(from.node)) continue;
      const auto made = made_.find(from.node);
      const bool constant = made != made_.end() && made->second->constant() != nullptr;
      if (constant || IsVariable(*from.node)) continue;
      if (IsRef(n->input_types()[i])) {
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
StatusOr<int> GroupMaker::SourceValue(Endpoint from) {
  const auto [it, added] = values_.try_emplace({from.node, from.index}, plan_.num_values);
  if (!added) return it->second;
  const int value = NewValue();
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<const Kernel> kernel, kernel_of_(*from.node));
  if (kernel->constant() != nullptr) {
    plan_.constants.push_back({value, kernel});
    if (IsVariable(*from.node)) plan_.variables.push_back({value, nullptr, false});
  } else {
    plan_.variables.push_back({value, std::move(kernel), false});
  }
  sources_.push_back(from.node);
  return value;
}

Status GroupMaker::AddMember(Node& node) {
  GroupMember member;
  member.kernel = made_.at(&node);
  member.output_types = node.output_types();
  for (int i = 0; i < node.num_inputs(); ++i) {
    const DType type = node.input_types()[i];
    // A reference that others hand on is that of the variable.
    const Endpoint from = IsRef(type) ? Endpoint{VariableOf(node.input(i)), 0} : node.input(i);
    GroupMember::Input input;
    TENON_ASSIGN_OR_RETURN(input.value, SourceValue(from));
    input.reads_ref = !IsRef(type) && IsRef(from.node->output_type(from.index));
    if (input.reads_ref) input.name = ToString(from);
    if (IsRef(type) || (type == DType::kResource && ChangesVariables(node))) {
      for (GroupPlan::Variable& v : plan_.variables) v.changes |= v.value == input.value;
    }
    member.inputs.push_back(std::move(input));
  }
  member.first_output = plan_.num_values;
  for (int i = 0; i < node.num_outputs(); ++i) values_[{&node, i}] = NewValue();
  plan_.members.push_back(std::move(member));
  return OkStatus();
}

void GroupMaker::FindLastUses() {
  std::vector<bool> used = plan_.is_output;
  for (const GroupPlan::Variable& v : plan_.variables) used[v.value] = true;
  for (auto member = plan_.members.rbegin(); member != plan_.members.rend(); ++member) {
    for (auto input = member->inputs.rbegin(); input != member->inputs.rend(); ++input) {
      input->last = !input->reads_ref && !used[input->value];
      used[input->value] = true;
    }
  }
}

StatusOr<Node*> GroupMaker::AddNode() {
  DTypeVector input_types;
  for (const Endpoint& e : inputs_) {
    input_types.push_back(BaseType(e.node->output_type(e.index)));
  }
  TENON_ASSIGN_OR_RETURN(
      Node* const group,
      graph_.AddNode(graph_.UniqueName("kernel_group"), "_KernelGroup",
                     {{"Tin", std::move(input_types)}, {"Tout", output_types_}}, inputs_));
  group->set_assigned_device(device_.name());
  for (Node* before : befores_) graph_.AddControlEdge(before, group);
  return group;
}

Status GroupMaker::Reconnect(Node* group) {
  for (Node* n : order_) {
    const std::vector<OutEdge> edges = n->out_edges();
    for (const OutEdge& e : edges) {
      if (IsMember(e.dst)) continue;
      if (e.output == kControlSlot) {
        graph_.AddControlEdge(group, e.dst);
      } else if (IsRef(n->output_type(e.output))) {
        TENON_RETURN_IF_ERROR(
            graph_.Connect({VariableOf({n, e.output}), 0}, e.dst, e.input));
        graph_.AddControlEdge(group, e.dst);
      } else {
        TENON_RETURN_IF_ERROR(
            graph_.Connect({group, outputs_.at({n, e.output})}, e.dst, e.input));
      }
    }
  }
  return OkStatus();
}

void GroupMaker::RemoveMembers() {
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

StatusOr<KernelMap> GroupKernels(Graph* part, Device& device, KernelCache& kernels,
                                 const std::shared_ptr<FunctionRuntime>& functions) {
  KernelMap made;
  if (device.queue() == nullptr) return made;
  const Kernels kernel_of = [&](const Node& node) { return kernels.Get(node, device, functions); };
  TENON_ASSIGN_OR_RETURN(const auto groups,
                         Grouping(*part, device, kernel_of, made).Find());
  for (const std::vector<Node*>& nodes : groups) {
    TENON_RETURN_IF_ERROR(GroupMaker(*part, device, made, kernel_of).Make(nodes));
  }
  return made;
}

}  // namespace tenon
