// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "distributed/grpc/rpc/rpc_server.h"
#include "distributed/protocol/job_end.h"
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

}  // namespace tenon
