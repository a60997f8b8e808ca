// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/op/op_registry.h"
#include "proto/graph.pb.h"

// Graphs to and from GraphDef. GraphFromProto is the one way in for graphs from files and peers: a
// graph it returns is valid whatever the bytes were.

namespace tenon {

/// The version of the dialect that this engine reads, which `min_consumer` is compared with.
inline constexpr int kGraphDefVersion = GraphVersions().producer;

struct GraphImportOptions {
  /// Allows what the runtime adds to partitions: names that begin with '_', and its own ops (see
  /// OpSchema::is_runtime_only).
  bool allow_internal_names = false;
  /// Infers the output shapes (see Graph::InferShapes).
  bool infer_shapes = true;
};

/// The graph of `proto`, its nodes in the same order. Nodes may come in any order; attributes that
/// are missing get their defaults, those the op does not know are kept. Nodes may name a function
/// of the library as their op.
///
/// InvalidArgument, naming the node: an illegal or repeated name, an op of the runtime, a missing
/// or wrong attribute, an input whose node or output does not exist, whose dtype differs, or that
/// follows a control input, too many or too few inputs, a cycle that does not go through
/// NextIteration, a device name that cannot be read; also for a graph that wants a newer reader;
/// and the errors of AddFunctionsFromProto. NotFound "Op type not registered 'X' ..." for an
/// unknown op.
StatusOr<Graph> GraphFromProto(const GraphDef& proto, const OpRegistry& registry,
                               const GraphImportOptions& options = {});

/// Adds the nodes of `proto`, whose inputs may be nodes of `graph`. The errors of GraphFromProto,
/// and InvalidArgument for a node that the graph has already. On error the graph is unchanged.
Status ExtendGraphFromProto(const GraphDef& proto, Graph* graph,
                            const GraphImportOptions& options = {});

struct GraphExportOptions {
  /// Leaves out attributes that have their defaults, so that older readers know all the rest.
  bool strip_default_attrs = false;
};

/// Replaces `*out`. A node's device is the one that was assigned to it, or else requested.
/// Fails with the first mistake made in building the graph, or for an attribute that has no message
/// (see AttributeToProto).
Status GraphToProto(const Graph& graph, GraphDef* out, const GraphExportOptions& options = {});

}  // namespace tenon
