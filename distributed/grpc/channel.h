// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>

namespace tenon {

/// A channel to host:port with the options that suit tensors: no limit on message size, large
/// frames and reads, no proxy, quick reconnection.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address);

/// The same options for a server.
void SetServerOptions(grpc::ServerBuilder* builder);

}  // namespace tenon
