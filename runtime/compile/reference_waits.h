// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/hash_map.h"
#include "core/graph/graph.h"

namespace tenon {

/// Makes `read`, which reads a ref variable for `consumer` in another memory, run when the consumer
/// is ready but for references: after its control inputs, and after those inputs that are neither
/// references nor made by one of `reads`, the nodes that read references for it (two of these could
/// wait for each other). Does nothing for a Merge, which does not wait for all of its inputs.
void WaitForOtherInputs(const Node& consumer, const flat_hash_set<const Node*>& reads, Node* read,
                        Graph* graph);

}  // namespace tenon
