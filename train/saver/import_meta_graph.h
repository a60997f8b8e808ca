// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <source_location>
#include <string>

#include "train/saver/saver.h"

namespace tenon {

class MetaGraphDef;

/// Options of ImportMetaGraph, by name.
struct ImportMetaGraphOptions {
  /// Names of the nodes begin with "<import_scope>/", as if NameScope were entered.
  std::string import_scope = {};
  /// Forget where nodes are to be placed: on a cluster that this program may not have.
  bool clear_devices = false;
  std::source_location location = std::source_location::current();
};

/// Adds the graph of a file that a Saver of Tenon or TensorFlow wrote, PREFIX.meta, to the graph
/// that is being built (tf.compat.v1.train.import_meta_graph), and gives a saver that restores its
/// checkpoints with the nodes of the graph, with which the program goes on from where the other one
/// stopped:
///
///   Graph graph(AllOps());
///   GraphBuilding building(graph);
///   TENON_ASSIGN_OR_RETURN(auto saver, ImportMetaGraph("run1/model-1000.meta"));
///   TENON_ASSIGN_OR_RETURN(auto session, MakeLocalSession(graph));
///   TENON_RETURN_IF_ERROR(saver->Restore(*session, "run1/model-1000"));
///   TENON_RETURN_IF_ERROR(session->Run({{"x", batch}}, {"loss"}, {"train"}).status());
///
/// Nodes have their names: Graph::Find and Session::Run take them. The graph knows the variables
/// with what is trainable, local, or a part of a whole, and has the collections of tensors and
/// nodes ("losses", "update_ops", "summaries", "train_op", ...), "global_step" and other lists of
/// variables as their references. What else a file may have is not wanted here: the contexts of
/// branches and loops, which gradients find by themselves, and queue runners, which nobody starts:
/// a graph that reads from queues waits for input until it is fed in their place.
///
/// Nodes are in the scopes that are entered, and on devices that these give where the nodes leave
/// them open; they wait for nothing. With a scope, frames of loops and resource variables that are
/// called after their node have it before their names too, so that a graph may be imported twice.
/// A file without a saver gives one of all variables of the graph, which may be empty().
///
/// NotFound for a missing file; InvalidArgument or DataLoss for one that is no MetaGraphDef, binary
/// or text; AlreadyExists, naming it, for a node that the graph has already; NotFound for an op
/// that is unknown; InvalidArgument for a collection or saver that names what the graph lacks, and
/// within a branch or loop; the errors of ExtendGraphFromProto. On error the graph is unchanged.
StatusOr<std::unique_ptr<Saver>> ImportMetaGraph(const std::string& path,
                                                 const ImportMetaGraphOptions& options = {});
/// The same of a message.
StatusOr<std::unique_ptr<Saver>> ImportMetaGraph(const MetaGraphDef& meta,
                                                 const ImportMetaGraphOptions& options = {});

}  // namespace tenon
