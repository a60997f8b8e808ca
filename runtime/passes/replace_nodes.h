// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace tenon {

/// The nodes of that op, in the graph's order.
std::vector<Node*> NodesOf(const Graph& graph, std::string_view op);

/// A node that another takes the place of: with its name, devices, edges to those that use it, and
/// what it waits for.
struct Replaced {
  /// `in` has the inputs of the new node, which are told by nodes of the graph before.
  Replaced(Node* node, std::string_view by, AttributeMap with, std::vector<Endpoint> in);

  Node* old;  // gone when the new nodes are made: only a key then
  std::string_view op;
  std::string name, requested_device, assigned_device;
  AttributeMap attrs;
  std::vector<Endpoint> inputs;
  std::vector<Node*> control_inputs;
  std::vector<OutEdge> out_edges;
};

/// Replaces all nodes at once, since removing them one by one takes time that is quadratic in their
/// neighbours. An input that is one of them is the new node. `removed` go too; nothing else may use
/// them.
Status ReplaceNodes(Graph* graph, const std::vector<Replaced>& all,
                    const std::vector<Node*>& removed = {});

}  // namespace tenon
