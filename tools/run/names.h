// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/graph/graph.h"

namespace tenon::tools {

/// The tensor "NODE" or "NODE:OUTPUT" that a flag names; `flag` is what errors begin with
/// ("--feed x"). NotFound, with the name that was probably meant, when the graph has no such node
/// or output.
StatusOr<Endpoint> FindTensor(const Graph& graph, const std::string& name, std::string_view flag);

/// The same for a node that is to be run, of which `name` may be an output.
StatusOr<const Node*> FindTarget(const Graph& graph, const std::string& name,
                                 std::string_view flag);

/// "; did you mean 'x'?" of the graph's nodes, or which ones there are when they are few; else how
/// to list them.
std::string NodeHint(const Graph& graph, const std::string& name);

}  // namespace tenon::tools
