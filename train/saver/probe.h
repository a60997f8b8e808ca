// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/session/session.h"

namespace tenon {

/// Finds out, before hours are spent on training, whether this process can write in `directory`,
/// which it makes when it is not there: the error names the directory and the reason. Leaves no
/// file.
Status CheckCheckpointDirectory(const std::string& directory);

/// Finds out, before hours are spent on training, whether sharded checkpoints can be saved: whether
/// `directory` is the same one here and on the task of each of `devices` (Saver::devices), and may
/// be written there. Each task reads a file that this process has written, and writes one that this
/// process must see; both are removed.
///
///   Saver saver({.sharded = true});
///   const auto open = [&](const Graph& graph) { return server->MakeSession(graph); };
///   TENON_RETURN_IF_ERROR(ProbeCheckpointDirectory("/data/run1", saver.devices(), open));
///
/// `open` opens a session of the cluster on a graph, here one of its own. FailedPrecondition names
/// all tasks that do not share the directory, and the path; the errors of CheckCheckpointDirectory
/// and of `open`. Makes the directory when it is not there. Blocks; to be called by one process,
/// the chief.
Status ProbeCheckpointDirectory(
    const std::string& directory, const std::vector<std::string>& devices,
    const std::function<StatusOr<std::unique_ptr<Session>>(const Graph&)>& open);

}  // namespace tenon
