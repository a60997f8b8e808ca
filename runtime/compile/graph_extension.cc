// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile/graph_extension.h"

#include "runtime/functions/expansion.h"

namespace tenon {

GraphExtension::~GraphExtension() {
  if (kept_) return;
  if (copy_) graph_ = *std::move(copy_);
  graph_.RemoveNodesFrom(first_id_);
  graph_.set_functions(functions_);
}

Status GraphExtension::Expand(const Compiler& compiler) {
  if (!CompletesCalls()) return compiler.Expand(&graph_, first_id_);
  copy_ = graph_.Clone();
  return compiler.Expand(&graph_);
}

bool GraphExtension::CompletesCalls() const {
  if (graph_.shared_functions() == functions_) return false;
  for (int id = 0; id < first_id_; ++id) {
    const Node* const node = graph_.node(id);
    if (node != nullptr && IsCall(graph_, *node) && MissingFunction(graph_, *node).empty()) {
      return true;
    }
  }
  return false;
}

}  // namespace tenon
