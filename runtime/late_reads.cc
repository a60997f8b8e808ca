// SPDX-License-Identifier: Apache-2.0
#include "runtime/late_reads.h"

#include <vector>

#include "core/flow_kind.h"

namespace tenon {
namespace {

bool IsReadOfReference(const Node& node) {
  return node.op() == "Identity" && node.num_inputs() == 1 && node.input(0).node != nullptr &&
         IsRef(node.input(0).node->output_type(node.input(0).index));
}

/// Which updates of a variable a node comes after.
class UpdatesBefore {
 public:
  /// The ops that take `variable` by reference and that `node` runs after.
  std::vector<Node*> Find(const Node* variable, const Node* node) {
    const auto [it, is_new] = updates_.try_emplace(variable);
    if (is_new) {
      for (const OutEdge& edge : variable->out_edges()) {
        if (edge.input != kControlSlot && IsRef(edge.dst->input_types()[edge.input])) {
          it->second.push_back({edge.dst, Descendants(*edge.dst)});
        }
      }
    }
    std::vector<Node*> found;
    for (const Update& update : it->second) {
      if (update.after.contains(node->id())) found.push_back(update.node);
    }
    return found;
  }

 private:
  struct Update {
    Node* node;
    flat_hash_set<int> after;  // the ids of those that run after it
  };

  static flat_hash_set<int> Descendants(const Node& node) {
    flat_hash_set<int> ids;
    std::vector<const Node*> stack = {&node};
    while (!stack.empty()) {
      const Node* next = stack.back();
      stack.pop_back();
      if (next->registration().is_loop_back) continue;  // the next iteration is another time
      for (const OutEdge& edge : next->out_edges()) {
        // What comes out of a Merge may have come another way, and the update be dead.
        if (FlowKindOf(*edge.dst) == FlowKind::kMerge) continue;
        if (ids.insert(edge.dst->id()).second) stack.push_back(edge.dst);
      }
    }
    return ids;
  }

  flat_hash_map<const Node*, std::vector<Update>> updates_;
};

}  // namespace

Status ReadAfterUpdates(Graph* graph) {
  UpdatesBefore updates_before;
  for (Node* node : graph->nodes()) {
    for (int i = 0; i < node->num_inputs(); ++i) {
      Node* const read = node->input(i).node;
      if (!IsReadOfReference(*read)) continue;
      const Endpoint variable = read->input(0);
      const std::vector<Node*> updates = updates_before.Find(variable.node, node);
      // A read that comes after them itself is late enough.
      if (updates.empty() || updates_before.Find(variable.node, read).size() == updates.size()) {
        continue;
      }
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
