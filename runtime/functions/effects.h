// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace tenon {

/// Whether all that has state in the functions that `call` names runs when the call does, though
/// no result needs it, where they do not say what must. As in TensorFlow, it does unless the call
/// is a PartitionedCall or a StatefulPartitionedCall, or control flow with
/// _lower_using_switch_merge that is not in a body which runs `apart` (see CallStack).
bool RunsAllEffects(const Node& call, bool apart);

/// Whether something in `body` that has state is needed by none of `results`.
bool HasLooseEffects(const std::vector<Node*>& body, const std::vector<Endpoint>& results);

/// Adds a node without inputs that waits for `after`; its name begins with `name`.
using AddWaitingNode = std::function<StatusOr<Node*>(std::string_view name, std::string_view op,
                                                     const std::vector<Node*>& after)>;

/// Nodes of `graph` after which all that has state in `body`, the nodes of one function's body, has
/// run or never will: some of it may be on branches that are not taken, or in loops, which are made
/// to wait for it. They run when `start` does, which is null when nothing holds up the body.
StatusOr<std::vector<Node*>> EndsOfEffects(Graph& graph, const AddWaitingNode& add,
                                           const std::vector<Node*>& body, Node* start);

}  // namespace tenon
