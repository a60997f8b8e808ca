// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "core/device/communicator.h"
#include "distributed/protocol/server.h"

namespace tenon {

/// How a process joins others, by name.
struct JoinRanksOptions {
  /// The library that does it: "gloo"; "mpi", which is that of the mpirun that has started this
  /// process; or "auto", which is MPI where there is such an mpirun of just these ranks and the
  /// plugin loads, and else Gloo. What is in the memory of GPUs goes by way of the host's with the
  /// first two. With "auto" NCCL does it where each rank has a GPU of its own, the first of its
  /// server, and finds NCCL, and `notice` is told why not; "nccl" is "auto" with an error instead.
  std::string library = "auto";
  /// How long a collective may take from when this process starts it: one that is gone, late or
  /// does something else ends the steps of all after that at most.
  std::chrono::milliseconds limit{std::chrono::minutes(5)};
  /// How long processes wait for each other at the start.
  std::chrono::milliseconds start_up_deadline{60000};
  /// Gets lines for people when ranks are waited for; may be null.
  std::function<void(const std::string& line)> notice = {};
  /// By which it waits; must outlive the ranks.
  Clock* clock = &MachineClock();
};

/// This worker as a rank among all workers of the server's cluster: its number is that of the task.
/// Blocks until all have joined. The server must outlive it. DeadlineExceeded names who has not
/// come; FailedPrecondition where connections are to be encrypted, which those of ranks are not,
/// and where there is no mpirun for "mpi"; InvalidArgument where the ranks have different
/// libraries.
StatusOr<std::unique_ptr<Communicator>> JoinRanks(Server& server,
                                                  const JoinRanksOptions& options = {});

/// This process as the only rank, whose sums over all ranks are its own values.
std::unique_ptr<Communicator> OnlyRank(const JoinRanksOptions& options = {});

}  // namespace tenon
