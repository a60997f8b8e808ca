// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>

#include "distributed/protocol/credentials.h"
#include "distributed/protocol/limits.h"

namespace tenon {

/// How often a server that says nothing while a call runs is asked whether it is still there. One
/// that does not answer within 20 s has vanished, and the call fails.
enum class Keepalive {
  kRare,      // every 310 s: any gRPC server bears it
  kFrequent,  // every 20 s: Tenon's servers do
};

/// A channel to host:port with the options that suit tensors: no limit on message size, large
/// frames and reads, no proxy, quick reconnection.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const Credentials& credentials = {},
                                           Keepalive keepalive = Keepalive::kRare);

/// The same options for a server, and its limits. It looks after its clients every 20 s. Compressed
/// messages are refused: one of a megabyte could become a gigabyte.
void SetServerOptions(const ServerLimits& limits, grpc::ServerBuilder* builder);

}  // namespace tenon
