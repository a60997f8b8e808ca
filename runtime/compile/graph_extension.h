// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "core/graph/graph.h"
#include "runtime/compile/compiler.h"

namespace tenon {

/// An addition to the graph of a session that runs. Its nodes go again with this object, unless
/// they are kept: a session whose graph could not be extended goes on with what it had. Costs as
/// much as there is to add, however large the graph is.
///
/// ```
/// GraphExtension extension(&graph);
/// TENON_RETURN_IF_ERROR(ExtendGraphFromProto(proto, &graph));
/// TENON_RETURN_IF_ERROR(extension.Expand(compiler));
/// TENON_RETURN_IF_ERROR(compiler.Place(&graph, {.first_id = extension.first_id()}));
/// extension.Keep();
/// ```
class GraphExtension {
 public:
  /// Before anything is added. `graph` is expanded and placed, and outlives this.
  explicit GraphExtension(Graph* graph)
      : graph_(*graph), first_id_(graph->num_ids()), functions_(graph->shared_functions()) {}
  ~GraphExtension();
  GraphExtension(const GraphExtension&) = delete;
  GraphExtension& operator=(const GraphExtension&) = delete;

  /// Expands the calls among the new nodes, and those there were before for want of a function that
  /// is there now. These are the one reason to copy the graph. The errors of Compiler::Expand.
  Status Expand(const Compiler& compiler);
  /// The id from which on nodes are to be placed: that of the first new one, and 0 where Expand has
  /// completed old calls, whose old companions have a say where their bodies go.
  int first_id() const { return copy_ ? 0 : first_id_; }
  void Keep() { kept_ = true; }

 private:
  /// Whether Expand replaces nodes that were there before.
  bool CompletesCalls() const;

  Graph& graph_;
  const int first_id_;                                      // of the new nodes
  const std::shared_ptr<const FunctionLibrary> functions_;  // those before
  std::optional<Graph> copy_;  // of the graph and what it has gained, with those calls
  bool kept_ = false;
};

}  // namespace tenon
