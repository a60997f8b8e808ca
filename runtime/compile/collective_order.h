// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

namespace tenon {

/// Makes the collectives of a step run one after the other, in an order that follows from the graph
/// alone, so that all ranks have the same one: those that can begin first come first (the longest
/// path to each counts), and among these by name, each after those that it depends on. A Cond with
/// collectives in its branches, and a loop with some in its body, have their turn as a whole, and
/// order those within; an iteration waits for those of the one before. Conds and loops that need
/// something of each other both ways are not ordered.
Status OrderCollectives(Graph* graph);

}  // namespace tenon
