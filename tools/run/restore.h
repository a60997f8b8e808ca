// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "runtime/session/session.h"

namespace tenon {
class MetaGraphDef;
}

namespace tenon::tools {

/// What a step needs of a graph: the tensors it is fed with, and all that it fetches and runs.
struct RunRoots {
  std::vector<std::string> feeds, fetches, targets;
};

/// How the variables of a graph get the values of a checkpoint: by the saver that a MetaGraph
/// brings, or else, for the variables whose names are in the checkpoint, by nodes of its own.
class CheckpointRestore {
 public:
  /// Options of Plan, by name.
  struct Options {
    /// Without a saver, the variables that the step needs must be in the checkpoint, unless others
    /// initialise them.
    RunRoots step;
    bool others_initialise = false;
    /// The files are where a server sees them, and perhaps not here.
    bool is_remote = false;
  };

  /// Finds the checkpoint `path` (see FindCheckpoint; also the folder of a SavedModel, and
  /// PREFIX.meta), and adds what is needed to `graph`, whose session is opened after. NotFound when
  /// there is none, and for what it lacks, with what it has; InvalidArgument for a variable of
  /// another dtype or shape.
  static StatusOr<CheckpointRestore> Plan(const std::string& path, const MetaGraphDef& meta,
                                          const Options& options, Graph* graph);

  /// Restores. The errors of the session, with the checkpoint's name.
  Status Run(Session& session) const;

 private:
  std::string prefix_;
  Session::Feeds feeds_;
  std::string target_;
};

}  // namespace tenon::tools
