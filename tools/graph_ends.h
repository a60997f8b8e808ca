// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace tenon {
class MetaGraphDef;
}

namespace tenon::tools {

/// Where a graph begins and ends: what tells a person how to run it.
struct GraphEnds {
  /// Placeholders, in the graph's order.
  std::vector<const Node*> placeholders;
  /// Nodes that none but gradients and summaries use: what is fetched, and what is run for what it
  /// changes. None of a saver, and none that gradients and branches have left over.
  std::vector<const Node*> results, targets;
  /// The nodes without an output that initialise variables, as programs call them: "init".
  std::vector<const Node*> initializers;
};

/// The ends of the graph of `meta`.
GraphEnds FindGraphEnds(const Graph& graph, const MetaGraphDef& meta);

/// Lines for people: what is fed, and what it ends in, each with dtype and shape.
std::string DescribeGraphEnds(const GraphEnds& ends);

/// Whether it is fed in any case, having no value of its own.
bool MustBeFed(const Node& placeholder);

}  // namespace tenon::tools
