// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/build/building.h"
#include "runtime/device/machine_clock.h"
#include "runtime/session/session.h"
#include "train/saver/checkpoint_state.h"
#include "train/saver/saver_nodes.h"

namespace tenon {

class MetaGraphDef;
class SaverDef;

/// Options of Saver, by name.
struct SaverOptions {
  /// What to save, by the names that it has in checkpoints: Variables, by value or by ref(). Parts
  /// of one partitioned variable stand under the same name. Empty: every variable of the graph that
  /// is not local, under its own name, or for a part that of the whole.
  std::vector<std::pair<std::string, Output>> variables = {};
  /// Every device of variables writes a file of its own, where it is; then they become one
  /// checkpoint.
  bool sharded = false;
  /// How many checkpoints to keep; 0: all, of which the state file has the latest only.
  int max_to_keep = 5;
  /// One of the checkpoints that would be deleted is kept each so many hours.
  double keep_checkpoint_every_n_hours = 10000;
  /// The scope of its nodes, made unique.
  std::string name = "save";
  /// Without any variable, have no nodes; a mistake otherwise.
  bool allow_empty = false;
  /// The clock that says how old checkpoints are; must outlive the saver.
  Clock* clock = &MachineClock();
  std::source_location location = std::source_location::current();
};

/// Options of Saver::Save, by name.
struct SaveOptions {
  /// Appended to the path: "dir/model-1000".
  std::optional<int64_t> global_step = {};
  /// The name of the state file, in the checkpoint's folder.
  std::string latest_filename = std::string(kCheckpointStateFile);
  /// Write <prefix>.meta, the graph and what TensorFlow's import_meta_graph wants to know.
  bool write_meta_graph = true;
  /// Enter the checkpoint into the state file, and delete those that are too many.
  bool write_state = true;
};

/// Saves the variables of a session to checkpoints and restores them (tf.compat.v1.train.Saver), in
/// TensorFlow's format: either library restores what the other one saved.
///
///   Variable w("w", RandomNormal({784, 10}));
///   Saver saver;                                        // after the last variable
///   ...
///   TENON_ASSIGN_OR_RETURN(auto prefix, saver.Save(*session, "/data/model", {.global_step =
///   step}));
///   ...
///   TENON_ASSIGN_OR_RETURN(auto latest, LatestCheckpoint("/data"));
///   TENON_RETURN_IF_ERROR(saver.Restore(*session, latest));
///
/// Whatever dies during a save, its directory has the checkpoints that it had before, complete and
/// in its state file, or the new one too. The ops run where the session puts them; on a cluster the
/// directory is one that all tasks with variables (without `sharded`, the one task that writes) and
/// this process share. Thread-safe: saves take turns; the graph must not change meanwhile.
class Saver {
 public:
  /// Adds its nodes to the graph that is being built, which must outlive it. Mistakes: no variable
  /// (unless allow_empty), one that the graph does not know, two under one name that are not parts
  /// of one whole.
  explicit Saver(const SaverOptions& options = {});
  /// The mistake that such a Saver of the graph would be.
  static Status CheckOptions(const SaverOptions& options, const Graph& graph);
  /// One that uses nodes which the graph that is being built has already, under the names of `def`
  /// (tf.train.Saver.from_proto); see ImportMetaGraph. InvalidArgument for what the graph lacks.
  static StatusOr<std::unique_ptr<Saver>> FromProto(
      const SaverDef& def, const std::source_location& location = std::source_location::current());

  /// Saves to the prefix `path`, or "<path>-<global_step>", which is returned. The order of what
  /// appears: the checkpoint, .meta, the state file; then what is too old goes, and what saves to
  /// this path have left that did not end. Replaces a checkpoint of the same prefix.
  /// InvalidArgument for an unusable path; FailedPrecondition without variables, for a variable
  /// without a value, and when this process does not see what was written; the errors of the
  /// session and of files.
  StatusOr<std::string> Save(Session& session, const std::string& path,
                             const SaveOptions& options = {});

  /// Gives the variables of `session` the values of a checkpoint: afterwards they are initialised.
  /// NotFound, naming it, for a prefix or variable that is not there; InvalidArgument when dtypes
  /// or shapes differ. After an error some variables may have their new values.
  Status Restore(Session& session, const std::string& prefix) const;

  /// The prefixes that it has saved, or recovered, and not deleted; oldest first.
  std::vector<std::string> last_checkpoints() const;
  /// Makes it delete these in time, too, as if it had saved them: those of GetCheckpointState,
  /// after a restart. Those that are not there are passed over.
  void RecoverLastCheckpoints(const std::vector<std::string>& prefixes);

  /// Whether each of devices() writes what is there.
  bool sharded() const { return options_.sharded; }
  /// The requested devices of the variables, each once.
  const std::vector<std::string>& devices() const { return nodes_.devices; }
  /// The graph it was made on.
  Graph& graph() const { return *graph_; }
  /// True when there was nothing to save.
  bool empty() const { return nodes_.save_tensor.empty(); }
  void ToProto(SaverDef* out) const;

 private:
  struct Kept {
    std::string prefix;
    Clock::WallTime time;
  };

  Saver(const SaverOptions& options, Graph* graph, SaverNodes nodes, bool writes_bundles);

  Status RunSave(Session& session, const std::string& prefix) const;
  /// What is wrong with the checkpoint as far as this process sees it, to follow its name in the
  /// message of a restore that failed; or "".
  std::string WhatIsWrong(const std::string& prefix) const;
  Status Record(const std::string& prefix, const std::string& latest_filename)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const SaverOptions options_;
  Graph* const graph_;
  SaverNodes nodes_;
  /// What it saves, by the names in checkpoints; nothing of a saver of FromProto.
  struct Saved {
    std::string name;
    DType dtype;
    PartialShape shape;  // of the whole
  };
  std::vector<Saved> saved_;
  /// False of a saver of TensorFlow's first format, which restores only.
  bool writes_bundles_ = true;
  mutable Mutex mu_;
  std::deque<Kept> kept_ ABSL_GUARDED_BY(mu_);
  Clock::WallTime next_preserved_ ABSL_GUARDED_BY(mu_);
};

/// The graph of `saver` with what is needed to go on with it (tf.train.export_meta_graph, the
/// .meta file of a checkpoint): the SaverDef, and of the collections the variables, trainable and
/// local ones, "global_step", "losses", "regularization_losses" and "update_ops". TensorFlow's
/// import_meta_graph reads it. Replaces `*out`. Fails with the first mistake made in building the
/// graph, which nobody may change meanwhile.
Status ExportMetaGraph(const Saver& saver, MetaGraphDef* out);

}  // namespace tenon
