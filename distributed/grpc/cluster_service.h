// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "distributed/credentials.h"
#include "distributed/grpc/rpc_server.h"
#include "distributed/job_end.h"
#include "proto/cluster_service.pb.h"

namespace tenon {

/// What ClusterService (cluster_service.proto) is served from; everything outlives it.
struct ClusterServiceParts {
  JobEnd& job_end;
  /// Says what the server is doing, and then calls `done`: perhaps later, when it is to ask the
  /// other tasks. Must not block.
  std::function<void(bool ask_tasks, cluster::ServerStatusResponse* out,
                     std::function<void()> done)>
      describe;
  std::function<void(const std::string& reason)> shutdown;  // must not block
};
void ServeCluster(RpcServer& server, ClusterServiceParts parts);

/// For people to read, several lines.
std::string ToText(const cluster::ServerStatusResponse& status);

/// Tells the server at `address` that /job:`job`/task:`task` has ended; gives up after `limit`.
/// While nobody listens there, it waits when `may_still_start`, else it gives up at once.
void SendTaskEnded(const std::string& address, const std::string& job, int task,
                   const Status& status, bool may_still_start, std::chrono::milliseconds limit,
                   const Credentials& credentials);

}  // namespace tenon
