// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/graph/graph.h"

namespace tenon {

/// Puts the bodies of functions in the place of the nodes that call them: PartitionedCall,
/// StatefulPartitionedCall, RemoteCall, nodes whose op is a function, SymbolicGradient, and If,
/// Case, While (also the stateless ones) and For, which become Switch, Merge and the frames of
/// loops. So bodies are placed, cut and optimised like everything else, over any devices and tasks.
///
/// A node that was replaced lives on by name, as Identity, IdentityN or NoOp, and can be fetched,
/// fed and waited for. The nodes of its body are called "<node>/<name in the body>"; they are where
/// they ask to be, and for the rest where the node asked to be; they wait for what the node waits
/// for, and are dead when it is.
///
/// A node whose function the graph's library lacks stays: only a step that needs it fails. So does
/// a node that cannot be replaced, and Graph::NodeError says why, naming node and function:
/// InvalidArgument for a function that is not there in a body, arguments that do not fit, and a
/// body that is no valid graph; Unimplemented for functions that call themselves.
///
/// ResourceExhausted when more than `max_nodes` nodes would be there in all, those counted that
/// were added in vain. The graph is then without use.
///
/// Only the nodes whose ids are at least `first_id`, which must not feed the others.
Status ExpandFunctions(Graph* graph, int64_t max_nodes, int first_id = 0);

/// The attribute of an IdentityN in the place of a call. Whoever takes one of its outputs needs
/// that result alone.
inline constexpr char kManyResults[] = "_many_results";

/// Whether the node is one that ExpandFunctions replaces, if its functions are there: its op is
/// such a one, or a function of the graph.
bool IsCall(const Graph& graph, const Node& node);
/// A function that the node calls and the graph's library lacks; empty when there is none.
std::string MissingFunction(const Graph& graph, const Node& node);

}  // namespace tenon
