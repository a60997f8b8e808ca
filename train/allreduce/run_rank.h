// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "core/base/status.h"
#include "core/device/communicator.h"
#include "core/op/op_registry.h"
#include "train/allreduce/ranks.h"
#include "train/replica_flags.h"

namespace tenon {

/// Takes part in a training by allreduce, as the rank that `flags` and the environment say, and as
/// the only one where nothing says more: what a program calls that is started by mpirun, srun,
/// `tenon launch --allreduce` or alone.
///
///   ReplicaFlags flags;  // of the command line
///   return RunRank(flags, AllOps(), [&](Communicator& ranks) { return Train(flags, ranks); });
///
/// The status of `train`; that of JoinRanks, which `options` are for, but for their start-up
/// deadline, which the flags have; or why the flags say no rank. InvalidArgument for a cluster with
/// parameter servers. `options.notice` gets the lines of RunReplica, too. With --check_config it
/// says which rank this is, and no more. `registry` must outlive it.
///
/// An error of all ranks (IsOfAllRanks) is told by `options.notice` of each before any ends, since
/// launchers kill the ranks that are left when the first one has ended. Who prints what this gives
/// need not print such an error again.
Status RunRank(const ReplicaFlags& flags, const OpRegistry& registry,
               const std::function<Status(Communicator& ranks)>& train,
               const JoinRanksOptions& options = {});

}  // namespace tenon
