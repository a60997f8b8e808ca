// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/hash_map.h"
#include "core/graph/graph.h"
#include "runtime/execute/frames.h"

namespace tenon {

/// Makes the loops of `graph` ready to be cut by the `location` of each node. A _Recv has no input
/// that says in which iteration it runs, so each location that receives inside a loop gets a
/// control loop
///   Enter -> Merge -> Switch(predicate of the loop) -> NextIteration -> Merge
/// which goes round once an iteration; its Merge triggers the receives. The triggers are returned
/// by (location, frame name). PlaceControlFlow comes before.
StatusOr<flat_hash_map<std::pair<std::string, std::string>, Node*>> AddControlLoops(
    Graph* graph, std::string_view (*location)(const Node&));

}  // namespace tenon
