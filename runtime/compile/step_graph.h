// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "runtime/execute/signature.h"

namespace tenon {

/// The part of a placed graph that a step of this signature needs: the nodes that fetches and
/// targets depend on after the fed tensors are cut. Feed i comes in through _Arg nodes of index i,
/// one per device that uses it; fetch i goes out through the _Retval of index i beside its source.
/// A fed Placeholder's control edges go with it.
///
/// Errors are TensorFlow's, by code and text: NotFound for unknown names, InvalidArgument for an
/// output that does not exist, a tensor that is fed twice, or fed and fetched, or fed and
/// connected, for a signature with neither fetch nor target, and for an op that is the runtime's
/// own.
StatusOr<Graph> MakeStepGraph(const Graph& graph, const Signature& signature);

}  // namespace tenon
