// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "distributed/grpc/master_service.h"
#include "distributed/grpc/rpc/rpc_server.h"
#include "distributed/protocol/worker_interface.h"

namespace tenon {

/// Serves PeerService (peer_service.proto), the answering end of PeerCalls: the calls of `worker`,
/// which other tasks make, and clients' steps. All must outlive the server. Steps start where the
/// poller waits.
void ServePeers(RpcServer& server, const std::string& task, WorkerInterface& worker,
                StepRunner& steps);

}  // namespace tenon
