// SPDX-License-Identifier: Apache-2.0
#include "runtime/passes/replace_nodes.h"

#include "core/base/hash_map.h"

namespace tenon {

std::vector<Node*> NodesOf(const Graph& graph, std::string_view op) {
  std::vector<Node*> found;
  for (Node* const node : graph.nodes()) {
    if (node->op() == op) found.push_back(node);
  }
  return found;
}

Replaced::Replaced(Node* node, std::string_view by, AttributeMap with, std::vector<Endpoint> in)
    : old(node),
      op(by),
      name(node->name()),
      requested_device(node->requested_device()),
      assigned_device(node->assigned_device()),
      attrs(std::move(with)),
      inputs(std::move(in)),
      control_inputs(node->control_inputs()),
      out_edges(node->out_edges()) {}

Status ReplaceNodes(Graph* graph, const std::vector<Replaced>& all,
                    const std::vector<Node*>& removed) {
  std::vector<Node*> old = removed;
  for (const Replaced& r : all) old.push_back(r.old);
  const flat_hash_set<const Node*> gone(old.begin(), old.end());
  graph->RemoveNodes(old);
  flat_hash_map<const Node*, Node*> made;
  for (const Replaced& r : all) {
    TENON_ASSIGN_OR_RETURN(Node* const node, graph->AddNode(r.name, r.op, r.attrs));
    node->set_requested_device(r.requested_device);
    node->set_assigned_device(r.assigned_device);
    made.emplace(r.old, node);
  }
  const auto now = [&](Node* node) {
    const auto found = made.find(node);
    return found == made.end() ? node : found->second;
  };
  for (const Replaced& r : all) {
    Node* const node = made.at(r.old);
    for (size_t i = 0; i < r.inputs.size(); ++i) {
      const Endpoint& in = r.inputs[i];
      TENON_RETURN_IF_ERROR(graph->Connect({now(in.node), in.index}, node, static_cast<int>(i)));
    }
    for (Node* const before : r.control_inputs) graph->AddControlEdge(now(before), node);
    for (const OutEdge& e : r.out_edges) {
      if (gone.contains(e.dst)) continue;  // new ones have their inputs of themselves
      if (e.output == kControlSlot) {
        graph->AddControlEdge(node, e.dst);
      } else {
        TENON_RETURN_IF_ERROR(graph->Connect({node, e.output}, e.dst, e.input));
      }
    }
  }
  return OkStatus();
}

}  // namespace tenon
