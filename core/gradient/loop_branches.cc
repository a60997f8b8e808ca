// SPDX-License-Identifier: Apache-2.0
#include "core/gradient/loop_branches.h"

#include "core/build/loop_frame.h"
#include "core/graph/graph.h"
#include "core/op/op_traits.h"

namespace tenon {

LoopBranches::LoopBranches(Graph& graph, const std::vector<Node*>& order) {
  flat_hash_map<std::string, int> around_loops;  // by frame
  for (const Node* node : order) {
    const FlowKind kind = node->flow();
    int branch = OfInputs(*node);
    if (kind == FlowKind::kEnter || kind == FlowKind::kConstantEnter) {
      const std::string& frame = LoopFrameOf(graph, *node);
      const auto [at, first] = around_loops.try_emplace(frame, branch);
      if (!first) at->second = Deeper(at->second, branch);
      branch = kNone;
    } else if (kind == FlowKind::kExit) {
      const auto found = around_loops.find(LoopFrameOf(graph, *node->input(0).node));
      branch = found == around_loops.end() ? kNone : found->second;
    } else if (kind == FlowKind::kMerge) {
      if (branch != kNone) branch = branches_[branch].around;
    } else if (kind == FlowKind::kSwitch && node->num_outputs() == 2 &&
               !node->input(1).node->schema().Has(OpTrait::kLoopCondition)) {
      branches_of_switch_[node->id()] = static_cast<int>(branches_.size());
      const int depth = branch == kNone ? 1 : branches_[branch].depth + 1;
      for (const bool taken : {false, true}) {
        branches_.push_back({node->input(1), taken, branch, depth});
      }
    }
    if (branch != kNone) branch_of_node_[node->id()] = branch;
  }
}

int LoopBranches::Of(const Output& value) const {
  const int id = value.node->id();
  if (const auto found = branches_of_switch_.find(id); found != branches_of_switch_.end()) {
    return found->second + value.index;
  }
  const auto found = branch_of_node_.find(id);
  return found == branch_of_node_.end() ? kNone : found->second;
}

int LoopBranches::OfInputs(const Node& node) const {
  int branch = kNone;
  for (const Endpoint& in : node.inputs()) {
    if (!in.node->is_next_iteration()) branch = Deeper(branch, Of(in));
  }
  for (const Node* control : node.control_inputs()) {
    const auto found = branch_of_node_.find(control->id());
    if (found != branch_of_node_.end()) branch = Deeper(branch, found->second);
  }
  return branch;
}

int LoopBranches::Deeper(int a, int b) const {
  if (a == kNone || b == kNone) return a == kNone ? b : a;
  return branches_[a].depth < branches_[b].depth ? b : a;
}

}  // namespace tenon
