// SPDX-License-Identifier: Apache-2.0
#include "runtime/late_reads.h"

#include <vector>

namespace tenon {
namespace {

bool IsReadOfReference(const Node& node) {
  return node.op() == "Identity" && node.num_inputs() == 1 && node.input(0).node != nullptr &&
         IsRef(node.input(0).node->output_type(node.input(0).index));
}

/// Every node that runs after some update of a variable, once it is asked for.
class UpdatedBefore {
 public:
  explicit UpdatedBefore(const Graph& graph) : graph_(graph) {}

  /// Whether `node` runs after an op that takes `variable` by reference.
  bool Contains(const Node* variable, const Node* node) {
    std::vector<bool>& after = after_[variable];
    if (after.empty()) {
      after.resize(graph_.num_ids());
      std::vector<const Node*> stack;
      for (const OutEdge& edge : variable->out_edges()) {
        if (edge.input != kControlSlot && IsRef(edge.dst->input_types()[edge.input])) {
          stack.push_back(edge.dst);
        }
      }
      while (!stack.empty()) {
        const Node* next = stack.back();
        stack.pop_back();
        if (after[next->id()]) continue;
        after[next->id()] = true;
        for (const OutEdge& edge : next->out_edges()) stack.push_back(edge.dst);
      }
    }
    return node->id() < static_cast<int>(after.size()) && after[node->id()];
  }

 private:
  const Graph& graph_;
  flat_hash_map<const Node*, std::vector<bool>> after_;
};

}  // namespace

Status ReadAfterUpdates(Graph* graph) {
  UpdatedBefore updated(*graph);
  for (Node* node : graph->nodes()) {
    if (node->control_inputs().empty()) continue;
    for (int i = 0; i < node->num_inputs(); ++i) {
      Node* const read = node->input(i).node;
      if (!IsReadOfReference(*read)) continue;
      const Endpoint variable = read->input(0);
      std::vector<Node*> updates;
      for (Node* before : node->control_inputs()) {
        if (updated.Contains(variable.node, before)) updates.push_back(before);
      }
      if (updates.empty()) continue;
      const std::string name =
          graph->UniqueName(StrCat(read->name(), "_after_", updates[0]->name()));
      TENON_ASSIGN_OR_RETURN(Node * late,
                             graph->AddNode(name, "Identity", read->attrs(), {variable}));
      late->set_assigned_device(read->assigned_device());
      for (Node* before : updates) graph->AddControlEdge(before, late);
      TENON_RETURN_IF_ERROR(graph->Connect({late, 0}, node, i));
    }
  }
  return OkStatus();
}

}  // namespace tenon
