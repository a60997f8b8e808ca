// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "distributed/resolver/cluster_resolver.h"
#include "tools/commands.h"
#include "train/replica_flags.h"

// Which task of a cluster a command is that trains, alone or with others.

namespace tenon::tools {

/// ResolveReplica, whose mistakes are wrong usage.
StatusOr<ResolvedTask> ResolveTrainingTask(const ClusterFlags& flags, int num_ps,
                                           Evaluator evaluator = Evaluator::kRefused);

/// Prints who this process is where flags alone do not say so. Whether that was all to do.
bool PrintTask(const ResolvedTask& task, const ClusterFlags& flags);

}  // namespace tenon::tools
