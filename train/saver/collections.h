// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"

// The collections of a MetaGraphDef, from and to those of a Graph.

namespace tenon {

class MetaGraphDef;

/// What the collections of a message say of a graph that has its nodes.
struct MetaGraphCollections {
  /// In the order of "variables", then of "local_variables".
  std::vector<VariableEntry> variables;
  /// Collections of tensors, nodes and references of variables, in order.
  std::vector<std::pair<std::string, Endpoint>> members;

  /// Enters them into the graph.
  void AddTo(Graph* graph) const;
};

/// Reads them; the nodes of `graph` have `prefix` before their names. InvalidArgument, naming
/// collection and member, for what cannot be read or is not in the graph, and for a variable whose
/// nodes are none of a variable.
StatusOr<MetaGraphCollections> ReadCollections(const MetaGraphDef& meta, const std::string& prefix,
                                               const Graph& graph);

/// Adds the variables of the graph, and those of its collections that TensorFlow knows too.
void WriteCollections(Graph& graph, MetaGraphDef* out);

}  // namespace tenon
