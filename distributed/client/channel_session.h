// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "distributed/client/remote_session_options.h"
#include "distributed/master/master_channel.h"
#include "runtime/session/session.h"

namespace tenon {

/// A session through `channel`; `target` is its name in messages and requests.
StatusOr<std::unique_ptr<Session>> OpenChannelSession(std::unique_ptr<MasterChannel> channel,
                                                      const std::string& target, const Graph& graph,
                                                      const RemoteSessionOptions& options);

}  // namespace tenon
