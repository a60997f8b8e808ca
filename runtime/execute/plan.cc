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
  plan->AddFrames(info);
  plan->index_of_.assign(graph.num_ids(), -1);
  TENON_RETURN_IF_ERROR(plan->AddNodes(order, info, kernel_of));
  plan->FindFollowers(order);
  plan->AddEdges(order);
  plan->FindRoots();
  plan->LimitIterations();
  plan->index_of_ = {};
  plan->placed_ = {};
  plan->frame_of_name_ = {};
  return plan;
}

void ExecutionPlan::AddFrames(const FrameInfo& info) {
  for (const FrameInfo::Frame& f : info.frames) {
    Frame frame;
    frame.info = f;
    if (!frames_.empty()) {
      frame_of_name_[f.name] = static_cast<int32_t>(frames_.size());
      frame.name_hash = LoopNameHash(f.name);
      frame.place = frames_[f.parent].num_children++;
    }
    frames_.push_back(std::move(frame));
  }
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
    // Iterations, which run at once, would each give the result.
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

bool ExecutionPlan::CanBePlaced(const OutEdge& edge) const {
  const PlanNode& dst = nodes_[index_of_[edge.dst->id()]];
  return edge.input != kControlSlot && edge.input < PlanNode::kMaxConstantInputs &&
         dst.role == PlanNode::Role::kKernel && dst.flow == FlowKind::kPlain;
}

std::vector<std::pair<int32_t, int32_t>> ExecutionPlan::PlaceConstants(
    const std::vector<Node*>& order) {
  std::vector<std::pair<int32_t, int32_t>> waits;
  placed_.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (nodes_[i].role != PlanNode::Role::kConstant) continue;
    const auto& edges = order[i]->out_edges();
    const auto& before = order[i]->control_inputs();
    placed_[i] =
        std::all_of(edges.begin(), edges.end(), [&](const OutEdge& e) { return CanBePlaced(e); });
    // A constant that waits for something may be on a branch that is not taken. Its consumers can
    // wait for that themselves, by no more edges than those that go away.
    if (before.size() > 1 && edges.size() > 1) placed_[i] = false;
    if (!before.empty() && !placed_[i]) continue;
    for (const OutEdge& e : edges) {
      if (!CanBePlaced(e)) continue;
      const int32_t dst = index_of_[e.dst->id()];
      PlanNode& item = nodes_[dst];
      frames_[item.frame].constants.push_back(
          {item.first_slot + e.input, nodes_[i].kernel->constant()});
      item.constant_inputs |= 1 << e.input;
      --item.pending;
      for (const Node* node : before) waits.push_back({index_of_[node->id()], dst});
    }
  }
  const auto by_slot = [](const PlanConstant& a, const PlanConstant& b) { return a.slot < b.slot; };
  for (Frame& f : frames_) std::sort(f.constants.begin(), f.constants.end(), by_slot);
  std::sort(waits.begin(), waits.end());
  waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
  return waits;
}

void ExecutionPlan::AddEdges(const std::vector<Node*>& order) {
  const std::vector<std::pair<int32_t, int32_t>> waits = PlaceConstants(order);
  auto wait = waits.begin();
  std::vector<size_t> reached(order.size());  // one more than the last node with an edge to it
  std::vector<size_t> consumed;  // by output: one more than the last node that was seen to use it
  for (size_t i = 0; i < order.size(); ++i) {
    PlanNode& item = nodes_[i];
    item.edges_begin = static_cast<int32_t>(edges_.size());
    for (const OutEdge& e : order[i]->out_edges()) {
      const int32_t dst = index_of_[e.dst->id()];
      const bool is_placed = item.role == PlanNode::Role::kConstant && e.input != kControlSlot &&
                             nodes_[dst].input_is_constant(e.input);
      if (is_placed || placed_[dst]) continue;
      const int32_t slot =
          e.input == kControlSlot ? kControlSlot : nodes_[dst].first_slot + e.input;
      edges_.push_back({dst, slot, e.output, false, false, false});
      reached[dst] = i + 1;
    }
    for (; wait != waits.end() && wait->first == static_cast<int32_t>(i); ++wait) {
      if (reached[wait->second] == i + 1) continue;
      edges_.push_back({wait->second, kControlSlot, kControlSlot, false, false, false});
      ++nodes_[wait->second].pending;
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
    e.only = dst.pending == 1 && dst.flow != FlowKind::kMerge;
    e.to_passage = dst.role == PlanNode::Role::kOrder && dst.edges_end - dst.edges_begin <= 1;
  }
}

void ExecutionPlan::FindRoots() {
  pending_.reserve(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const PlanNode& item = nodes_[i];
    pending_.push_back(item.pending);
    if (item.pending == 0 && item.flow != FlowKind::kMerge && !placed_[i]) {
      roots_.push_back(static_cast<int32_t>(i));
    }
  }
}

void ExecutionPlan::LimitIterations() {
  constexpr int64_t kStateBytes = 16, kIterationBytes = 512;
  constexpr int kSomeIterations = 10;  // TensorFlow's default
  constexpr double kMost = 1e18;       // a wish may be more than any number of bytes
  const size_t n = frames_.size();
  // One iteration of a frame alone, with one of each frame inside it, and as many as are wished.
  std::vector<double> own(n), least(n), wish(n);
  for (size_t f = n; f-- > 0;) {
    own[f] = static_cast<double>(kIterationBytes + frames_[f].num_slots * int64_t{sizeof(Value)} +
                                 frames_[f].num_nodes * kStateBytes);
    least[f] += own[f];
    wish[f] = std::min(kMost, (own[f] + wish[f]) * frames_[f].info.parallel_iterations);
    if (f == 0) break;
    // Parents come before their children.
    least[frames_[f].info.parent] += least[f];
    wish[frames_[f].info.parent] += wish[f];
  }
  std::vector<std::vector<int32_t>> children(n);
  for (size_t f = 1; f < n; ++f)
    children[frames_[f].info.parent].push_back(static_cast<int32_t>(f));
  std::vector<double> share(n, kMaxIterationBytes);
  for (size_t f = 0; f < n; ++f) {
    FrameInfo::Frame& info = frames_[f].info;
    if (f > 0) {
      info.parallel_iterations =
          static_cast<int>(std::clamp<double>(share[f] / least[f], 1, info.parallel_iterations));
    }
    // A loop that wishes for less than an equal share leaves the rest to the others.
    std::sort(children[f].begin(), children[f].end(),
              [&](int32_t a, int32_t b) { return wish[a] < wish[b]; });
    double left = f == 0 ? share[0] : share[f] / info.parallel_iterations - own[f];
    for (size_t i = 0; i < children[f].size(); ++i) {
      const int32_t child = children[f][i];
      share[child] = std::min(wish[child], left / static_cast<double>(children[f].size() - i));
      left -= share[child];
      // Loops that follow each other need not do with less for each other, and some iterations of
      // each take no more than the graph.
      if (f > 0) continue;
      const double some = std::min<double>(kSomeIterations * least[child], kMaxIterationBytes);
      share[child] = std::max(share[child], std::min(wish[child], some));
    }
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
