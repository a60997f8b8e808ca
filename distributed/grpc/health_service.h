// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "distributed/grpc/rpc/rpc_server.h"

namespace tenon {

/// Serves grpc.health.v1.Health, gRPC's health checking protocol: Check says that the server, or
/// one of TensorFlow's services, is serving, NotFound of others; Watch says it once and then waits
/// until its caller is gone or the server ends. Who lacks the job's token may ask as well, as
/// Kubernetes' probes do. Before Start.
void ServeHealth(RpcServer& server);

}  // namespace tenon
