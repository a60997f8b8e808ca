// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "distributed/client/remote_session_options.h"
#include "runtime/session/session.h"

namespace tenon {

/// A session on the cluster of the server at `target`, "grpc://host:port". DeadlineExceeded naming
/// the address and the last error when no server answers.
StatusOr<std::unique_ptr<Session>> MakeRemoteSession(const std::string& target, const Graph& graph,
                                                     const RemoteSessionOptions& options = {});

}  // namespace tenon
