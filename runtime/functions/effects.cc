// SPDX-License-Identifier: Apache-2.0
#include "runtime/functions/effects.h"

#include <algorithm>
#include <list>
#include <unordered_map>
#include <unordered_set>

#include "core/graph/graph.h"

namespace tenon {
namespace {

/// The while loops in a body, as Enter, Exit and their like make them.
class Loops {
 public:
  struct Loop {
    std::string name;
    Loop* parent;             // null outside all loops of the body
    std::vector<Node*> ends;  // of an iteration: NextIterations
    std::vector<Node*> exits;
    std::vector<Node*> effects;
  };

  explicit Loops(const std::vector<Node*>& body) : body_(body.begin(), body.end()) {
    for (Node* node : body) {
      if (!IsFedByBody(*node)) pending_.push_back({node, &outside_});
    }
    while (!pending_.empty()) {
      const auto [node, loop] = pending_.back();
      pending_.pop_back();
      if (loop_of_.emplace(node, loop).second) Visit(node, loop);
    }
  }

  /// A loop within another one comes after it.
  std::list<Loop>& loops() { return loops_; }
  Loop& outside() { return outside_; }
  /// The innermost loop that `node` is in.
  Loop& LoopOf(Node* node) {
    const auto found = loop_of_.find(node);
    return found == loop_of_.end() ? outside_ : *found->second;
  }

 private:
  bool IsFedByBody(const Node& node) const {
    const auto& inputs = node.inputs();
    const auto& controls = node.control_inputs();
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](const Endpoint& in) { return body_.contains(in.node); }) ||
           std::any_of(controls.begin(), controls.end(),
                       [&](Node* before) { return body_.contains(before); });
  }

  void Visit(Node* node, Loop* loop) {
    const FlowKind kind = node->flow();
    if (kind == FlowKind::kNextIteration) loop->ends.push_back(node);
    Loop* next = loop;
    if (node->is_enter()) {
      next = Within(loop, node->attrs().GetOr<std::string>("frame_name", ""));
    } else if (kind == FlowKind::kExit && loop->parent != nullptr) {
      loop->exits.push_back(node);
      next = loop->parent;
    }
    for (const OutEdge& edge : node->out_edges()) {
      if (body_.contains(edge.dst)) pending_.push_back({edge.dst, next});
    }
  }

  Loop* Within(Loop* parent, const std::string& name) {
    for (Loop& loop : loops_) {
      if (loop.parent == parent && loop.name == name) return &loop;
    }
    return &loops_.emplace_back(Loop{name, parent, {}, {}, {}});
  }

  const std::unordered_set<const Node*> body_;
  std::vector<std::pair<Node*, Loop*>> pending_;
  std::unordered_map<const Node*, Loop*> loop_of_;
  Loop outside_{"", nullptr, {}, {}, {}};
  std::list<Loop> loops_;
};

}  // namespace

bool RunsAllEffects(const Node& call, bool apart) {
  if (call.schema().call == CallKind::kFunction) return false;
  return apart || !call.attrs().GetOr<bool>("_lower_using_switch_merge", false);
}

bool HasLooseEffects(const std::vector<Node*>& body, const std::vector<Endpoint>& results) {
  const std::unordered_set<const Node*> in_body(body.begin(), body.end());
  std::unordered_set<const Node*> needed;
  std::vector<const Node*> pending;
  const auto need = [&](const Node* node) {
    if (in_body.contains(node) && needed.insert(node).second) pending.push_back(node);
  };
  for (const Endpoint& result : results) need(result.node);
  while (!pending.empty()) {
    const Node* const node = pending.back();
    pending.pop_back();
    for (const Endpoint& in : node->inputs()) need(in.node);
    for (const Node* before : node->control_inputs()) need(before);
  }
  return std::any_of(body.begin(), body.end(),
                     [&](Node* node) { return node->is_stateful() && !needed.contains(node); });
}

StatusOr<std::vector<Node*>> EndsOfEffects(Graph& graph, const AddWaitingNode& add,
                                           const std::vector<Node*>& body, Node* start) {
  std::vector<Node*> effects;
  bool has_branches = false;
  for (Node* node : body) {
    if (node->is_stateful()) effects.push_back(node);
    has_branches |= node->flow() == FlowKind::kSwitch;
  }
  if (effects.empty() || !has_branches) return effects;
  Loops loops(body);
  for (Node* node : effects) loops.LoopOf(node).effects.push_back(node);
  // A ControlTrigger runs when what it waits for has run or is dead.
  for (auto loop = loops.loops().rbegin(); loop != loops.loops().rend(); ++loop) {
    if (loop->effects.empty()) continue;
    TENON_ASSIGN_OR_RETURN(Node * over, add("effects", "ControlTrigger", loop->effects));
    for (Node* end : loop->ends) graph.AddControlEdge(over, end);
    // The condition, which may have effects, runs once more than the body.
    for (Node* exit : loop->exits) graph.AddControlEdge(over, exit);
    auto& around = loop->parent->effects;
    around.insert(around.end(), loop->exits.begin(), loop->exits.end());
  }
  std::vector<Node*> before;
  TENON_ASSIGN_OR_RETURN(before.emplace_back(),
                         add("effects", "ControlTrigger", loops.outside().effects));
  if (start != nullptr) before.push_back(start);
  TENON_ASSIGN_OR_RETURN(Node * done, add("done", "NoOp", before));
  return std::vector<Node*>{done};
}

}  // namespace tenon
