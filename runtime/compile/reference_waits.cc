// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile/reference_waits.h"

#include "core/graph/graph.h"

namespace tenon {

void WaitForOtherInputs(const Node& consumer, const flat_hash_set<const Node*>& reads, Node* read,
                        Graph* graph) {
  if (consumer.flow() == FlowKind::kMerge) return;
  for (const Endpoint& in : consumer.inputs()) {
    const bool waits = !reads.contains(in.node) && !IsRef(in.node->output_type(in.index));
    if (waits) graph->AddControlEdge(in.node, read);
  }
  for (Node* before : consumer.control_inputs()) graph->AddControlEdge(before, read);
}

}  // namespace tenon
