// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "distributed/grpc/rpc/blocking_calls.h"
#include "distributed/grpc/rpc/rpc_server.h"
#include "distributed/master/master.h"
#include "runtime/device/thread_pool.h"

namespace tenon {

/// Serves `master` as tensorflow.MasterService, steps on the pool; all three must outlive the
/// server. Steps of one session run at once.
void ServeMaster(RpcServer& server, Master& master, BlockingCalls& calls, ThreadPool& pool);

}  // namespace tenon
