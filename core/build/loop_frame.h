// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace tenon {

/// The name of the innermost while loop that the outputs of `node` belong to, as the Enter nodes
/// before it tell; empty outside loops. Follows one path of inputs back: in a graph that can run,
/// all lead to the same loop. What was found is kept in the graph.
const std::string& LoopFrameOf(Graph& graph, const Node& node);

}  // namespace tenon
