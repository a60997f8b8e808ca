// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/plan.h"

#include <algorithm>

#include "runtime/execute/argument_checks.h"

namespace tenon {
namespace {

/// Arguments and results of a plan are numbered 0, 1, ...; a larger number is a forged graph.
constexpr int64_t kMaxArgs = 1 << 20;

/// What the values and states of all iterations that run at once may take. A graph may wish for
/// very many large ones, in loops in loops.
constexpr int64_t kMaxIterationBytes = 256 << 20;

Status RecordIndexed(const Node& node, DTypeVector* types, int32_t* index) {
  TENON_ASSIGN_OR_RETURN(const auto i, node.attrs().Get<int64_t>("index"));
  TENON_ASSIGN_OR_RETURN(const auto type, node.attrs().Get<DType>("T"));
  if (i < 0 || i >= kMaxArgs) {
    return InvalidArgument("node '", node.name(), "': index ", i, " is out of range");
  }
  if (static_cast<int64_t>(types->size()) <= i) types->resize(i + 1, DType::kInvalid);
  const DType known = (*types)[i];
  if (node.is_retval() && known != DType::kInvalid) {
    return InvalidArgument("node '", node.name(), "' (", node.op(),
                           "): there is another one of index ", i);
  }
  // Each device has its own _Arg of a value.
  if (known != DType::kInvalid && known != type) {
    return InvalidArgument("node '", node.name(), "' (", node.op(), "): argument ", i, " is ", type,
                           ", and ", known, " elsewhere");
  }
  (*types)[i] = type;
  *index = static_cast<int32_t>(i);
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<ExecutionPlan>> ExecutionPlan::Create(const Graph& graph, Device& device,
                                                               const KernelOf& kernel_of) {
  TENON_RETURN_IF_ERROR(graph.Validate());
  TENON_ASSIGN_OR_RETURN(const FrameInfo info, FindFrames(graph));
  TENON_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph.TopologicalOrder());
  std::unique_ptr<ExecutionPlan> plan(new ExecutionPlan(device));
  for (const FrameInfo::Frame& f : info.frames) {
    if (!plan->frames_.empty()) {
      plan->frame_of_name_[f.name] = static_cast<int32_t>(plan->frames_.size());
    }
    plan->frames_.push_back({f, 0, 0});
  }
  plan->index_of_.assign(graph.num_ids(), -1);
  TENON_RETURN_IF_ERROR(plan->AddNodes(order, info, kernel_of));
  plan->FindFollowers(order);
  plan->AddEdges(order);
  plan->FindRoots();
  plan->LimitIterations();
  plan->index_of_ = {};
  plan->frame_of_name_ = {};
  return plan;
}

Status ExecutionPlan::AddNodes(const std::vector<Node*>& order, const FrameInfo& info,
                               const KernelOf& kernel_of) {
  nodes_.reserve(order.size());
  for (const Node* node : order) {
    index_of_[node->id()] = static_cast<int32_t>(nodes_.size());
    TENON_RETURN_IF_ERROR(AddNode(*node, info, kernel_of));
  }
  costs_ = std::vector<std::atomic<uint32_t>>(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Kernel* kernel = nodes_[i].kernel;
    const bool measured = nodes_[i].role == PlanNode::Role::kKernel && !nodes_[i].async;
    costs_[i].store(measured ? 0 : kUnmeasuredTicks, std::memory_order_relaxed);
    nodes_[i].assumed_expensive = measured && kernel->is_expensive();
  }
  return OkStatus();
}

Status ExecutionPlan::AddNode(const Node& node, const FrameInfo& info, const KernelOf& kernel_of) {
  const auto index = static_cast<int32_t>(nodes_.size());
  PlanNode item;
  item.flow = node.flow();
  item.frame = info.frame_of_node[node.id()];
  Frame& frame = frames_[item.frame];
  item.first_slot = frame.num_slots;
  frame.num_slots += node.num_inputs();
  item.state = frame.num_nodes++;
  item.num_inputs = node.num_inputs();
  item.num_outputs = node.num_outputs();
  item.pending = static_cast<int32_t>(node.control_inputs().size());
  if (item.flow == FlowKind::kMerge) {
    for (const Endpoint& in : node.inputs()) {
      if (in.node->flow() != FlowKind::kNextIteration) ++item.merge_inputs;
    }
  } else {
    item.pending += node.num_inputs();
  }
  if (item.flow == FlowKind::kEnter || item.flow == FlowKind::kConstantEnter) {
    TENON_ASSIGN_OR_RETURN(const auto name, node.attrs().Get<std::string>("frame_name"));
    item.child_frame = frame_of_name_.at(name);
  }
  has_control_flow_ |= item.flow != FlowKind::kPlain && item.flow != FlowKind::kSwitch &&
                       item.flow != FlowKind::kTransfer;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Endpoint& in = node.input(i);
    if (IsRef(in.node->output_type(in.index)) && !IsRef(node.input_types()[i])) {
      item.reads_refs = true;
      input_names_[{index, i}] = ToString(in);
    }
  }
  input_types_.push_back(&*types_.insert(node.input_types()).first);
  item.output_types = &*types_.insert(node.output_types()).first;
  names_.push_back(node.name());
  ops_.push_back(node.op());
  if (node.is_arg()) {
    item.role = PlanNode::Role::kArg;
    TENON_RETURN_IF_ERROR(RecordIndexed(node, &arg_types_, &item.index));
  } else if (node.is_retval()) {
    item.role = PlanNode::Role::kRetval;
    TENON_RETURN_IF_ERROR(RecordIndexed(node, &retval_types_, &item.index));
    // Iterations, which run at once, would each give it.
    if (item.frame != 0) return NoValueOfRetval(item.index, node.name(), /*in_loop=*/true);
  } else {
    TENON_ASSIGN_OR_RETURN(std::shared_ptr<const Kernel> kernel, kernel_of(node));
    item.kernel = kernel.get();
    item.async = kernel->is_async();
    if (kernel->constant() != nullptr) {
      item.role = PlanNode::Role::kConstant;
    } else if (node.op() == "NoOp") {
      item.role = PlanNode::Role::kOrder;
    }
    kernels_.push_back(std::move(kernel));
  }
  nodes_.push_back(item);
  return OkStatus();
}

void ExecutionPlan::FindFollowers(const std::vector<Node*>& order) {
  const auto gives_kept = [](const Node& node) {
    const auto keeps = [](DType t) { return IsRef(t) || !IsPlain(BaseType(t)); };
    return node.is_stateful() || node.schema().is_internal() ||
           std::any_of(node.input_types().begin(), node.input_types().end(), keeps) ||
           std::any_of(node.output_types().begin(), node.output_types().end(), IsRef);
  };
  std::vector<bool> follows;
  for (const Node* node : order) follows.push_back(gives_kept(*node));
  if (std::find(follows.begin(), follows.end(), true) == follows.end()) return;
  for (size_t i = 0; i < order.size(); ++i) {
    for (const Endpoint& in : order[i]->inputs()) {
      const int32_t from = index_of_[in.node->id()];
      // A value that goes round a loop comes from a node later in the order.
      nodes_[i].renews |= from >= static_cast<int32_t>(i) || follows[from];
    }
    follows[i] = follows[i] || nodes_[i].renews;
  }
}

void ExecutionPlan::AddEdges(const std::vector<Node*>& order) {
  std::vector<size_t> consumed;  // by output: one more than the last node that was seen to use it
  for (size_t i = 0; i < order.size(); ++i) {
    PlanNode& item = nodes_[i];
    item.edges_begin = static_cast<int32_t>(edges_.size());
    for (const OutEdge& e : order[i]->out_edges()) {
      const int32_t dst = index_of_[e.dst->id()];
      const int32_t slot =
          e.input == kControlSlot ? kControlSlot : nodes_[dst].first_slot + e.input;
      if (IsConstantInput(static_cast<int32_t>(i), dst, e.input)) {
        constants_.push_back({slot, item.kernel->constant()});
        nodes_[dst].constant_inputs |= 1 << e.input;
        --nodes_[dst].pending;
        continue;
      }
      edges_.push_back({dst, slot, e.output, false, false, false});
    }
    item.edges_end = static_cast<int32_t>(edges_.size());
    consumed.resize(std::max<size_t>(consumed.size(), item.num_outputs));
    for (int32_t e = item.edges_end - 1; e >= item.edges_begin; --e) {
      if (edges_[e].output == kControlSlot) continue;
      edges_[e].last = consumed[edges_[e].output] != i + 1;
      consumed[edges_[e].output] = i + 1;
    }
    if (has_control_flow_) continue;
    item.output_slot = -1;
    if (item.num_outputs != 1 || item.async) continue;
    const auto brings = [](const PlanEdge& e) { return e.output != kControlSlot; };
    const auto begin = edges_.begin() + item.edges_begin;
    if (std::count_if(begin, edges_.end(), brings) != 1) continue;
    item.output_slot = std::find_if(begin, edges_.end(), brings)->slot;
  }
  for (PlanEdge& e : edges_) {
    const PlanNode& dst = nodes_[e.dst];
    e.only = dst.pending == 1;
    e.to_passage = dst.role == PlanNode::Role::kOrder && dst.edges_end - dst.edges_begin <= 1;
  }
  const auto by_slot = [](const PlanConstant& a, const PlanConstant& b) { return a.slot < b.slot; };
  std::sort(constants_.begin(), constants_.end(), by_slot);
}

bool ExecutionPlan::IsConstantInput(int32_t i, int32_t dst, int input) const {
  if (has_control_flow_ || input == kControlSlot || input >= PlanNode::kMaxConstantInputs) {
    return false;
  }
  // A constant that waits for something may be on a branch that is not taken.
  return nodes_[i].role == PlanNode::Role::kConstant && nodes_[i].pending == 0 &&
         nodes_[dst].role == PlanNode::Role::kKernel && nodes_[dst].flow == FlowKind::kPlain;
}

void ExecutionPlan::FindRoots() {
  pending_.reserve(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const PlanNode& item = nodes_[i];
    pending_.push_back(item.pending);
    const bool nothing_left =
        item.role == PlanNode::Role::kConstant && item.edges_begin == item.edges_end;
    if (item.pending == 0 && item.flow != FlowKind::kMerge && !nothing_left) {
      roots_.push_back(static_cast<int32_t>(i));
    }
  }
}

void ExecutionPlan::LimitIterations() {
  constexpr int64_t kStateBytes = 16, kIterationBytes = 512;
  // One iteration of a frame and of all those inside it. Parents come before their children.
  std::vector<int64_t> bytes(frames_.size());
  for (size_t f = frames_.size() - 1; f > 0; --f) {
    bytes[f] += kIterationBytes + frames_[f].num_slots * int64_t{sizeof(Value)} +
                frames_[f].num_nodes * kStateBytes;
    bytes[frames_[f].info.parent] += bytes[f];
  }
  std::vector<int64_t> share(frames_.size(), kMaxIterationBytes);
  for (size_t f = 1; f < frames_.size(); ++f) {
    FrameInfo::Frame& info = frames_[f].info;
    const int64_t room = share[info.parent] / bytes[f];
    info.parallel_iterations =
        static_cast<int>(std::clamp<int64_t>(room, 1, info.parallel_iterations));
    share[f] = share[info.parent] / info.parallel_iterations;
  }
}

void ExecutionPlan::RecordCost(int32_t i, uint64_t ticks) const {
  std::atomic<uint32_t>& cost = costs_[i];
  const uint64_t now = std::clamp<uint64_t>(ticks, 1, 1 << 30);
  const uint64_t before = cost.load(std::memory_order_relaxed);
  // The first runs of a kernel may prepare things: what is cheaper counts sooner than what is not.
  uint64_t mean = now;
  if (before != 0) mean = now < before ? (before + now) / 2 : (before * 3 + now) / 4;
  cost.store(static_cast<uint32_t>(mean), std::memory_order_relaxed);
}

}  // namespace tenon
