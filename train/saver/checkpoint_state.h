// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

// Which checkpoints a directory has: the text file `checkpoint` in it, as tf.train.Saver writes and
// reads it. It names complete checkpoints only, whatever dies when: Saver::Save replaces it in one
// step, after the checkpoint and before older ones are deleted.
//
//   TENON_ASSIGN_OR_RETURN(const std::string prefix, LatestCheckpoint("/data/run1"));
//   TENON_RETURN_IF_ERROR(saver.Restore(*session, prefix));
//
// Functions of files; those of one directory are not to be changed by two threads at a time.

namespace tenon {

/// The file's name.
inline constexpr std::string_view kCheckpointStateFile = "checkpoint";

/// The checkpoints that a state file lists, by their prefixes.
struct CheckpointPaths {
  std::string latest;
  /// Oldest first; the last one is the latest.
  std::vector<std::string> all;
};

/// What the state file of `directory` says (tf.train.get_checkpoint_state). Paths that it has
/// relative to the directory are given with the directory before them. NotFound when there is no
/// such file, DataLoss when it cannot be read as one.
StatusOr<CheckpointPaths> GetCheckpointState(
    const std::string& directory, std::string_view latest_filename = kCheckpointStateFile);

/// Replaces the state file (tf.train.update_checkpoint_state); synced when it returns. Relative
/// paths become relative to the directory when that is relative too.
Status UpdateCheckpointState(const std::string& directory, const CheckpointPaths& paths,
                             std::string_view latest_filename = kCheckpointStateFile);

/// The prefix of the newest checkpoint of `directory` (tf.train.latest_checkpoint). NotFound when
/// there is no state file, or when the checkpoint that it names is not there.
StatusOr<std::string> LatestCheckpoint(const std::string& directory,
                                       std::string_view latest_filename = kCheckpointStateFile);

/// Whether there is a checkpoint at `prefix` (tf.train.checkpoint_exists), in the current format.
bool CheckpointExists(const std::string& prefix);

/// Deletes a checkpoint and its .meta file (tf.train.remove_checkpoint), the index first, so that
/// it is never there by half. No error when there is none.
Status RemoveCheckpoint(const std::string& prefix);

/// Deletes what saves to `path`, of any step, have left that did not end: temporary files, and
/// folders of shards. Nobody else may be saving there. Never fails: what cannot be deleted stays.
void RemoveUnfinishedSaves(const std::string& path);

}  // namespace tenon
