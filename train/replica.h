// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "distributed/protocol/server.h"
#include "runtime/device/machine_clock.h"
#include "train/replica_device_setter.h"

namespace tenon {

/// Takes part in a job of parameter servers (job "ps") and workers (job "worker"), as the task that
/// `options` say: a parameter server serves until all workers have ended, and a worker calls
/// `train` and tells the parameter servers how it ended, also those that are still to start.
///
/// The status of `train`; for a parameter server that of Server::WaitForJobEnd, with five minutes
/// for workers that give no sign of life, and options.start_up_deadline for those that have not
/// come or are to return; or why the server could not start, of which a worker tells the parameter
/// servers that listen. A worker's training is ended, too, when others have not come
/// start_up_deadline after its server has started: DeadlineExceeded names them. A job that fails
/// ends everywhere: the parameter servers
/// end the other workers (Server::EndTasks). A worker whose training a signal has Cancelled ends by
/// the signal. `registry` must outlive it.
Status RunReplica(const ServerOptions& options, const OpRegistry& registry,
                  const std::function<Status(Server& server)>& train);

/// For the chief of workers that train at their own pace, after its own last step: waits until no
/// other task of the job "worker" answers, so that a checkpoint that is saved then has their last
/// steps too. `notice` gets a line every 5 s. It ends at once after a signal, and with a line when
/// they have made no step for `patience`; `step` reads the step counter, whose errors it returns.
Status WaitForOtherWorkers(Server& server, const std::function<StatusOr<int64_t>()>& step,
                           const std::function<void(const std::string& line)>& notice,
                           std::chrono::milliseconds patience = std::chrono::minutes(1),
                           Clock& clock = MachineClock());

/// ReplicaDeviceSetter for the graph of a worker: variables go to the parameter servers of the
/// cluster of `server`, all else to its task.
DeviceFunction ReplicaDeviceSetter(const Server& server);

}  // namespace tenon
