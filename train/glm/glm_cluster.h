// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "distributed/protocol/server.h"
#include "train/glm/fit_glm.h"

// A fit on the workers of a cluster. Worker 0, the chief, has the graph, in which each worker has a
// part of its own; the other tasks serve it.

namespace tenon {

/// Takes part in a fit as the task that `options` say. The chief calls `fit`, and then tells the
/// others how it ended; another task serves until it is told, and gives up, with Unavailable, when
/// the chief has not answered for a minute. The status of `fit`; for the others, Aborted where
/// the chief has failed. `registry` must outlive it.
Status RunGlmTask(const ServerOptions& options, const OpRegistry& registry,
                  const std::function<Status(Server& server)>& fit);

/// FitGlm on the workers of a server's cluster, by its chief. A worker that dies is left out, and
/// one that is back takes part again: the rows are dealt anew, and the steps go on where they were.
/// Such things are `notice`d. The same estimates whatever the number of workers, but for the order
/// of additions. Of `glm`, the devices and make_session are set.
StatusOr<GlmResult> FitGlmOnWorkers(Server& server, std::string_view formula,
                                    const std::vector<std::string>& files, GlmOptions glm,
                                    const std::function<void(const std::string& line)>& notice);

}  // namespace tenon
