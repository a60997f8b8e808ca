// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/client_context.h>

#include <chrono>
#include <memory>
#include <string>

#include "distributed/grpc/rpc/channel.h"
#include "distributed/grpc/rpc/deadline.h"
#include "distributed/grpc/rpc/security.h"
#include "proto/cluster_service.grpc.pb.h"

namespace tenon {

using ClusterStub = cluster::ClusterService::Stub;

/// The stub that makes one call of ClusterService by the channel, with `context`, which ends it
/// after `limit`.
inline std::unique_ptr<ClusterStub> StubBy(const std::shared_ptr<grpc::Channel>& channel,
                                           const Credentials& credentials,
                                           std::chrono::milliseconds limit,
                                           grpc::ClientContext* context) {
  AddToken(credentials, context);
  context->set_deadline(GrpcDeadline(limit));
  return cluster::ClusterService::NewStub(channel);
}

/// The same to `address`.
inline std::unique_ptr<ClusterStub> StubFor(const std::string& address,
                                            const Credentials& credentials,
                                            std::chrono::milliseconds limit,
                                            grpc::ClientContext* context) {
  return StubBy(OpenChannel(address, credentials), credentials, limit, context);
}

}  // namespace tenon
