// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile/control_loops.h"

#include <set>

#include "core/graph/graph.h"
#include "core/op/op_traits.h"

namespace tenon {
namespace {

using Triggers = flat_hash_map<std::pair<std::string, std::string>, Node*>;

class ControlLoopBuilder {
 public:
  ControlLoopBuilder(Graph& graph, std::string_view (*location)(const Node&))
      : graph_(graph), location_(location) {}

  StatusOr<Triggers> Run() {
    TENON_ASSIGN_OR_RETURN(info_, FindFrames(graph_));
    if (info_.frames.size() == 1) return Triggers();
    for (size_t f = 1; f < info_.frames.size(); ++f) {
      frame_of_name_[info_.frames[f].name] = static_cast<int>(f);
    }
    for (Node* n : graph_.nodes()) {
      if (n->schema().Has(OpTrait::kLoopCondition)) loop_conds_[FrameOf(*n)] = n;
    }
    FindReceivers();
    // Parents first: a nested control loop is triggered by that of its parent. Frames are numbered
    // in the order in which they were found, parents before children.
    for (const auto& [frame, location] : needed_) {
      TENON_RETURN_IF_ERROR(AddLoop(frame, location));
    }
    return std::move(triggers_);
  }

 private:
  int FrameOf(const Node& node) const { return info_.frame_of_node[node.id()]; }

  /// The frame in which the consumers of a node's outputs run.
  int OutputFrame(const Node& node) const {
    const FlowKind kind = node.flow();
    const int own = FrameOf(node);
    if (kind == FlowKind::kExit) return info_.frames[own].parent;
    if (kind == FlowKind::kEnter || kind == FlowKind::kConstantEnter) {
      const auto found = frame_of_name_.find(node.attrs().GetOr<std::string>("frame_name", ""));
      if (found != frame_of_name_.end()) return found->second;
    }
    return own;
  }

  void Need(int frame, const std::string& location) {
    // Where one is, those around it are already.
    for (int f = frame; f != 0 && needed_.insert({f, location}).second;
         f = info_.frames[f].parent) {
    }
  }

  void FindReceivers() {
    for (Node* n : graph_.nodes()) {
      const std::string from(location_(*n));
      const int frame = OutputFrame(*n);
      if (frame == 0) continue;
      for (const OutEdge& e : n->out_edges()) {
        const std::string to(location_(*e.dst));
        if (to == from) continue;
        Need(frame, to);
        // It is sent once an iteration, but nothing else may make iterations where it is.
        if (n->flow() == FlowKind::kConstantEnter) Need(frame, from);
      }
    }
    // The control loops' own predicates cross too, but only to locations that have one already.
  }

  StatusOr<Node*> Add(const std::string& base, std::string_view op, AttributeMap attrs,
                      const std::vector<Endpoint>& inputs, const std::string& device) {
    TENON_ASSIGN_OR_RETURN(Node * node,
                           graph_.AddNode(graph_.UniqueName(base), op, std::move(attrs), inputs));
    node->set_assigned_device(device);
    return node;
  }

  /// Some device at the location: control loops compute nothing.
  const std::string& DeviceAt(const std::string& location) {
    if (device_at_.empty()) {
      for (const Node* n : graph_.nodes()) {
        std::string& best = device_at_[std::string(location_(*n))];
        if (best.empty() || n->assigned_device() < best) best = n->assigned_device();
      }
    }
    return device_at_[location];
  }

  Status AddLoop(int frame, const std::string& location) {
    const FrameInfo::Frame& info = info_.frames[frame];
    const auto cond = loop_conds_.find(frame);
    if (cond == loop_conds_.end()) {
      return InvalidArgument("while loop '", info.name, "' spans devices but has no LoopCond");
    }
    const std::string& device = DeviceAt(location);
    const std::string base = StrCat("_cloop", info.name);
    const DType type = DType::kFloat;
    TENON_ASSIGN_OR_RETURN(Node * start,
                           Add(base + "_start", "Const",
                               {{"dtype", type}, {"value", Tensor::Scalar(0.0f)}}, {}, device));
    if (info.parent != 0) {
      graph_.AddControlEdge(triggers_.at({location, info_.frames[info.parent].name}), start);
    }
    TENON_ASSIGN_OR_RETURN(
        Node * enter, Add(base + "_enter", "Enter",
                          {{"T", type},
                           {"frame_name", info.name},
                           {"parallel_iterations", static_cast<int64_t>(info.parallel_iterations)}},
                          {{start, 0}}, device));
    TENON_ASSIGN_OR_RETURN(Node * merge,
                           Add(base + "_merge", "Merge", {{"T", type}, {"N", int64_t{2}}},
                               {{enter, 0}, {enter, 0}}, device));
    TENON_ASSIGN_OR_RETURN(Node * choose, Add(base + "_switch", "Switch", {{"T", type}},
                                              {{merge, 0}, {cond->second, 0}}, device));
    TENON_ASSIGN_OR_RETURN(
        Node * next, Add(base + "_next", "NextIteration", {{"T", type}}, {{choose, 1}}, device));
    TENON_RETURN_IF_ERROR(graph_.Connect({next, 0}, merge, 1));
    triggers_[{location, info.name}] = merge;
    return OkStatus();
  }

  Graph& graph_;
  std::string_view (*const location_)(const Node&);
  FrameInfo info_;
  StringMap<int> frame_of_name_;
  StringMap<std::string> device_at_;
  flat_hash_map<int, Node*> loop_conds_;
  std::set<std::pair<int, std::string>> needed_;
  Triggers triggers_;
};

}  // namespace

StatusOr<Triggers> AddControlLoops(Graph* graph, std::string_view (*location)(const Node&)) {
  return ControlLoopBuilder(*graph, location).Run();
}

}  // namespace tenon
