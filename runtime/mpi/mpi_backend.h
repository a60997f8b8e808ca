// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/collectives/collective_backend.h"

namespace tenon {

/// Joins by MPI, which it begins where the program has not: as CollectivesPlugin::join, between the
/// processes of one mpirun, whose numbers there must be those of the ranks. A process is one rank
/// at a time. InvalidArgument where MPI has other numbers, FailedPrecondition where the process has
/// another MPI, has ended it, or has begun it for calls of one thread.
StatusOr<std::unique_ptr<CollectiveBackend>> JoinByMpi(const RankOptions& options);

}  // namespace tenon
