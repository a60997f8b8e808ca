// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/hash_map.h"
#include "core/graph/graph.h"

// When those that use a node may take its operand, which has the same value, instead.

namespace tenon {

/// Nodes, met in topological order, whose outputs are references or may have a variable's memory,
/// as TensorFlow's servers let them: read later, they may be other values. A computed value is a
/// copy.
class ViewsOfVariables {
 public:
  void Meet(const Node& node);
  bool Has(const Endpoint& value) const;

 private:
  flat_hash_set<const Node*> views_;
};

/// What waits for a node, or what it waits for, need not be what waits for its operand.
bool HasControlEdges(const Node& node);

}  // namespace tenon
