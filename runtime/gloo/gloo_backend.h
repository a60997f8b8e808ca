// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/collectives/collective_backend.h"

namespace tenon {

/// Joins by Gloo: connections of TCP from each rank to each, at ports that the system gives, which
/// carry neither a token nor TLS. As CollectivesPlugin::join. A process that lets SIGPIPE end it
/// ignores that signal from then on.
StatusOr<std::unique_ptr<CollectiveBackend>> JoinByGloo(const RankOptions& options);

}  // namespace tenon
