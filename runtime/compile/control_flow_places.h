// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

namespace tenon {

/// Moves nodes that only steer values to where the values are, as TensorFlow does before it cuts a
/// graph: a Switch to its data input (a value that is not taken need not travel, and the branch
/// reads a variable through an edge that does not leave a reference), an Exit to its input, an
/// Enter of a value and a NextIteration to the first node that takes their output, which is the
/// Merge where there is one. For placed graphs. Fails when the graph has a cycle outside of loops.
Status PlaceControlFlow(Graph* graph);

}  // namespace tenon
