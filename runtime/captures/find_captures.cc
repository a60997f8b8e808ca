// SPDX-License-Identifier: Apache-2.0
#include "runtime/captures/find_captures.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/graph/graph.h"
#include "core/op/op_traits.h"

namespace tenon {
namespace {

/// Capturing fewer kernels of the device saves nothing.
constexpr int kFewestKernels = 4;

/// Whether what it sends leaves the task.
StatusOr<bool> SendsToOtherTasks(const Node& node) {
  if (node.flow() != FlowKind::kTransfer || node.num_inputs() == 0) return false;
  TENON_ASSIGN_OR_RETURN(const auto from, node.attrs().Get<std::string>("send_device"));
  TENON_ASSIGN_OR_RETURN(const auto to, node.attrs().Get<std::string>("recv_device"));
  const auto task = [](const std::string& device) {
    return device.substr(0, device.find("/device:"));
  };
  return task(from) != task(to);
}

/// Whether all references and handles that the node takes are of variables.
bool UsesVariablesOnly(const Node& node) {
  for (int i = 0; i < node.num_inputs(); ++i) {
    const DType type = node.input_types()[i];
    if (type == DType::kVariant) return false;
    if (IsRef(type) && VariableOf(node.input(i)) == nullptr) return false;
    if (type == DType::kResource && !node.input(i).node->is_variable()) return false;
  }
  return true;
}

/// The name under which both ends of a transfer meet.
StatusOr<std::string> EdgeName(const Node& node) {
  std::string name;
  for (const char* attr : {"tensor_name", "send_device", "recv_device"}) {
    TENON_ASSIGN_OR_RETURN(const auto value, node.attrs().Get<std::string>(attr));
    name += StrCat(value, "\n");
  }
  return name;
}

/// The nodes of all parts, each behind what it waits for.
class JoinedParts {
 public:
  static StatusOr<JoinedParts> Of(absl::Span<const DevicePart> parts) {
    JoinedParts step;
    StringMap<Node*> senders;
    std::vector<Node*> nodes;
    for (const DevicePart& part : parts) {
      for (Node* n : part.graph->nodes()) {
        nodes.push_back(n);
        if (n->flow() != FlowKind::kTransfer || n->num_inputs() == 0) continue;
        TENON_ASSIGN_OR_RETURN(const std::string name, EdgeName(*n));
        senders[name] = n;
      }
    }
    flat_hash_map<const Node*, int> waiting;
    flat_hash_map<const Node*, Node*> receiver;
    for (Node* n : nodes) {
      waiting[n] += n->num_inputs() + static_cast<int>(n->control_inputs().size());
      if (n->flow() != FlowKind::kTransfer || n->num_inputs() > 0) continue;
      TENON_ASSIGN_OR_RETURN(const std::string name, EdgeName(*n));
      const auto found = senders.find(name);
      if (found == senders.end()) continue;  // fed
      step.sender_[n] = found->second;
      receiver[found->second] = n;
      ++waiting[n];
    }
    for (Node* n : nodes) {
      if (waiting[n] == 0) step.order_.push_back(n);
    }
    for (size_t i = 0; i < step.order_.size(); ++i) {
      Node* const n = step.order_[i];
      const auto reach = [&](Node* next) {
        if (--waiting[next] == 0) step.order_.push_back(next);
      };
      for (const OutEdge& e : n->out_edges()) reach(e.dst);
      if (const auto found = receiver.find(n); found != receiver.end()) reach(found->second);
    }
    return step;
  }

  const std::vector<Node*>& order() const { return order_; }
  /// The node whose value `node` receives, or null.
  const Node* SenderOf(const Node* node) const {
    const auto found = sender_.find(node);
    return found == sender_.end() ? nullptr : found->second;
  }

 private:
  std::vector<Node*> order_;
  flat_hash_map<const Node*, Node*> sender_;
};

/// Whether the node may wait for what others put into a resource, or take out of it, in this step
/// or another. Ops that take a queue by reference are not declared stateful, as in TensorFlow.
bool MayWait(const Node& node) {
  const auto is_handle = [](DType t) { return IsRef(t) || t == DType::kResource; };
  const DTypeVector &inputs = node.input_types(), &outputs = node.output_types();
  const bool takes_handle = std::any_of(inputs.begin(), inputs.end(), is_handle);
  if (!(node.is_stateful() || takes_handle) || node.is_arg() ||
      node.schema().Has(OpTrait::kNeverWaits) || node.schema().FindAttr("seed") != nullptr ||
      node.flow() == FlowKind::kTransfer) {
    return false;
  }
  if (takes_handle) return !UsesVariablesOnly(node);
  // A staging area, which has no handle, may be full; an op that puts a tuple there gives nothing.
  if (outputs.empty()) return node.schema().FindAttr("capacity") != nullptr;
  // Ops that give nothing but handles make the resources.
  return !std::all_of(outputs.begin(), outputs.end(), is_handle);
}

/// Which nodes of a part make groups. A node's stage is the number of groups that must be over
/// before it can run. Those of one stage that can be in a group are one if they wait for the same:
/// for what a client feeds, perhaps in a later call of a partial run, and for what others put into
/// queues and the like, perhaps behind another group.
class CaptureFinder {
 public:
  CaptureFinder(const DevicePart& part, const JoinedParts& step, const KernelOf& kernel_of,
                KernelMap& made)
      : device_(*part.device), step_(step), kernel_of_(kernel_of), made_(made) {
    for (const Node* n : part.graph->nodes()) marks_[n].in_part = true;
  }

  /// The nodes of each group.
  StatusOr<std::vector<std::vector<Node*>>> Find() {
    struct Candidate {
      std::vector<Node*> nodes;
      int device_kernels = 0;
    };
    std::map<std::pair<int, std::vector<int>>, Candidate> candidates;
    for (Node* n : step_.order()) {
      TENON_RETURN_IF_ERROR(MarkNode(*n));
      const Mark& mark = marks_[n];
      if (!mark.member) continue;
      Candidate& candidate = candidates[{mark.stage, mark.waits_for}];
      candidate.nodes.push_back(n);
      candidate.device_kernels += mark.on_device;
    }
    std::vector<std::vector<Node*>> groups;
    for (auto& [key, candidate] : candidates) {
      if (candidate.device_kernels >= kFewestKernels) groups.push_back(std::move(candidate.nodes));
    }
    return groups;
  }

 private:
  struct Mark {
    bool in_part = false;
    bool member = false;
    bool on_device = false;  // it queues work
    int stage = 0;
    std::vector<int> waits_for;  // sorted numbers of nodes that may wait
  };

  Status MarkNode(Node& node);
  /// Whether the kernel could be in a group, and by itself or only behind others of it.
  enum class Fit : uint8_t { kNo, kBehind, kYes };
  StatusOr<Fit> FitOf(const Node& node);

  Device& device_;
  const JoinedParts& step_;
  const KernelOf& kernel_of_;
  KernelMap& made_;
  flat_hash_map<const Node*, Mark> marks_;
  int waiting_nodes_ = 0;
};

StatusOr<CaptureFinder::Fit> CaptureFinder::FitOf(const Node& node) {
  if (node.is_arg() || node.is_retval() || node.is_variable()) return Fit::kNo;
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<const Kernel> kernel, kernel_of_(node));
  const bool out =
      kernel->is_async() || kernel->constant() != nullptr || node.flow() == FlowKind::kTransfer;
  made_[&node] = std::move(kernel);
  if (out || !UsesVariablesOnly(node)) return Fit::kNo;
  const DTypeVector& types = node.input_types();
  const bool has_variables = std::any_of(types.begin(), types.end(),
                                         [](DType t) { return IsRef(t) || t == DType::kResource; });
  if (node.is_stateful() && !has_variables) return Fit::kNo;
  const KernelMemory memory = node.registration().MemoryOn(device_.kind(), node.attrs());
  // What files hold is not the same each time.
  if (memory == KernelMemory::kHost && (has_variables || !node.is_pure())) return Fit::kNo;
  if (memory == KernelMemory::kHost) return Fit::kBehind;
  // A value read outside would share the variable's buffer, which could not be changed in place.
  const bool reads = std::any_of(node.inputs().begin(), node.inputs().end(), [](const Endpoint& e) {
    return IsRef(e.node->output_type(e.index)) && VariableOf(e) != nullptr;
  });
  if (memory == KernelMemory::kAny && !has_variables && !reads) return Fit::kBehind;
  // It makes a tensor the variable's value, which is nothing for the device to do.
  if (memory == KernelMemory::kAny && ChangesVariables(node)) return Fit::kNo;
  // What comes from the host is copied before: a capture holds the host's values as they are.
  return node.schema().Has(OpTrait::kCopiesToDevice) ? Fit::kBehind : Fit::kYes;
}

Status CaptureFinder::MarkNode(Node& node) {
  Mark mark = marks_[&node];
  Fit fit = Fit::kNo;
  if (mark.in_part) {
    TENON_ASSIGN_OR_RETURN(fit, FitOf(node));
  }
  bool behind = false;
  int after = 0;  // the stage in a group; else one more behind its members
  int outside = 0;
  const auto see = [&](const Node* from) {
    const Mark& before = marks_.at(from);
    after = std::max(after, before.stage);
    outside = std::max(outside, before.stage + (before.member ? 1 : 0));
    behind |= before.member;
    std::vector<int> both;
    std::set_union(mark.waits_for.begin(), mark.waits_for.end(), before.waits_for.begin(),
                   before.waits_for.end(), std::back_inserter(both));
    mark.waits_for = std::move(both);
  };
  for (const Node* n : node.control_inputs()) see(n);
  const Node* const sender = step_.SenderOf(&node);
  if (sender != nullptr) see(sender);
  if (node.num_inputs() > 0) behind = false;  // it is not one of them if it only waits for them
  for (int i = 0; i < node.num_inputs(); ++i) see(node.input(i).node);
  mark.member = fit == Fit::kYes || (fit == Fit::kBehind && behind);
  mark.stage = mark.member ? after : outside;
  const bool is_fed =
      node.flow() == FlowKind::kTransfer && node.num_inputs() == 0 && sender == nullptr;
  if (is_fed || MayWait(node)) mark.waits_for.push_back(waiting_nodes_++);
  mark.on_device = fit == Fit::kYes && node.registration().MemoryOn(device_.kind(), node.attrs()) ==
                                           KernelMemory::kDevice;
  marks_[&node] = mark;
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<std::vector<Node*>>> FindCaptures(absl::Span<const DevicePart> parts,
                                                       size_t index, const KernelOf& kernel_of,
                                                       KernelMap* made) {
  std::vector<std::vector<Node*>> groups;
  for (const DevicePart& part : parts) {
    for (const Node* n : part.graph->nodes()) {
      const FlowKind flow = n->flow();
      if (flow != FlowKind::kPlain && flow != FlowKind::kTransfer) return groups;
      TENON_ASSIGN_OR_RETURN(const bool sends, SendsToOtherTasks(*n));
      if (sends) return groups;
    }
  }
  TENON_ASSIGN_OR_RETURN(const JoinedParts step, JoinedParts::Of(parts));
  return CaptureFinder(parts[index], step, kernel_of, *made).Find();
}

bool ChangesVariables(const Node& node) {
  const auto& types = node.input_types();
  if (std::any_of(types.begin(), types.end(), IsRef)) return true;
  return !node.schema().Has(OpTrait::kReadsVariable) &&
         std::count(types.begin(), types.end(), DType::kResource) > 0;
}

Node* VariableOf(Endpoint reference) {
  while (!reference.node->is_variable()) {
    if (reference.node->num_inputs() == 0 || !IsRef(reference.node->input_types()[0])) {
      return nullptr;
    }
    reference = reference.node->input(0);
  }
  return reference.node;
}

}  // namespace tenon
