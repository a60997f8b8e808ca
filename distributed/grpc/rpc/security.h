// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_context.h>

#include <memory>

#include "core/base/status.h"
#include "distributed/protocol/credentials.h"

// Credentials as gRPC takes them.

namespace tenon {

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const Credentials& credentials);
std::shared_ptr<grpc::ServerCredentials> ServerCredentialsOf(const Credentials& credentials);

/// InvalidArgument when gRPC cannot make a server with the certificate and the key.
Status CheckServerCredentials(const Credentials& credentials);

/// Puts the token, if there is one, into a call that is about to be made.
void AddToken(const Credentials& credentials, grpc::ClientContext* context);
/// Whether a call carries the token that `credentials` ask for. Takes as long for any wrong one.
bool HasToken(const Credentials& credentials, const grpc::ServerContextBase& context);
/// Whether a call comes from this machine.
bool IsFromLoopback(const grpc::ServerContextBase& context);

}  // namespace tenon
