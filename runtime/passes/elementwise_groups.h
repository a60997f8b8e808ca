// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "core/graph/graph.h"

namespace tenon {

/// Groups of nodes of one device's graph that may run as one node: they are connected by edges of
/// values, no way leads out of a group and back into it, through other tasks and resources that
/// nodes wait for neither, and where one of them is dead all are. `may_join` says which nodes have
/// the kind for it. Each group has two nodes at least, and is in topological order. None where
/// loops are not as while loops are. Linear in the graph, but for sets of at most 64 nodes.
StatusOr<std::vector<std::vector<Node*>>> FindGroups(const Graph& graph,
                                                     absl::FunctionRef<bool(const Node&)> may_join);

}  // namespace tenon
