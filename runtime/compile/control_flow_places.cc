// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile/control_flow_places.h"

#include <algorithm>

#include "core/graph/graph.h"

namespace tenon {
namespace {

/// The node whose device `node` takes; null when it stays where it is.
const Node* PlacedWith(const Node& node) {
  switch (node.flow()) {
    case FlowKind::kSwitch:
    case FlowKind::kExit:
      return node.input(0).node;
    case FlowKind::kEnter:
    case FlowKind::kConstantEnter:
    case FlowKind::kNextIteration: {
      if (IsRef(node.input_types()[0])) return nullptr;
      const Node* first = nullptr;
      for (const OutEdge& e : node.out_edges()) {
        if (e.output == kControlSlot) continue;
        // The value is in one iteration only, and so must be where the Merge takes it.
        if (e.dst->flow() == FlowKind::kMerge) return e.dst;
        if (first == nullptr) first = e.dst;
      }
      return first;
    }
    default:
      return nullptr;
  }
}

}  // namespace

Status PlaceControlFlow(Graph* graph) {
  const std::vector<Node*> nodes = graph->nodes();
  const bool any = std::any_of(nodes.begin(), nodes.end(),
                               [](const Node* n) { return PlacedWith(*n) != nullptr; });
  if (!any) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph->TopologicalOrder());
  for (Node* const node : order) {
    if (const Node* const other = PlacedWith(*node)) {
      node->set_assigned_device(other->assigned_device());
    }
  }
  return OkStatus();
}

}  // namespace tenon
