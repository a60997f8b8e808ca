// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "proto/cost_graph.pb.h"
#include "proto/graph.pb.h"
#include "proto/step_stats.pb.h"

namespace tenon {

/// Adds the nodes of a partition to `out`, with what they cost in a step of which `stats` tell: the
/// time of each, and the dtype, shape and bytes of what it gave. Nodes that did not run have none.
void AddCosts(const GraphDef& graph, const StepStats& stats, CostGraphDef* out);

}  // namespace tenon
