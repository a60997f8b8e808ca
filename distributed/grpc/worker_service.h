// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/entropy.h"
#include "distributed/grpc/rpc/rpc_server.h"
#include "distributed/protocol/worker_interface.h"
#include "runtime/device/thread_pool.h"

namespace tenon {

/// Serves `worker` as tensorflow.WorkerService. Graphs are registered on the pool; steps start
/// where the poller waits. Both must outlive the server. The collective calls (CompleteGroup and
/// the like) are not served.
void ServeWorker(RpcServer& server, WorkerInterface& worker, ThreadPool& pool, Entropy& entropy);

}  // namespace tenon
