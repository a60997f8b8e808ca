// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/status.h>

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "distributed/protocol/credentials.h"

namespace tenon {

/// The message as a field of a protobuf message may hold it: bytes that are not UTF-8, which a step
/// may quote from its data, are written as \xNN.
std::string WireMessage(const Status& status);

/// The two number their codes alike. A message is cut at 3,072 bytes, as TensorFlow's servers do:
/// it travels in a header.
grpc::Status ToGrpc(const Status& status);
Status FromGrpc(const grpc::Status& status);

/// The possible reason of a connection's error that gRPC words so, as the end of a sentence for
/// people; or nothing.
std::string_view ConnectionHint(std::string_view said, bool has_tls);

/// The error of a call to the server at `address` that did not get through, with the address and
/// what may be the reason; other errors as they are. `credentials` are those of this side.
Status ConnectionError(const grpc::Status& status, const std::string& address,
                       const Credentials& credentials);

}  // namespace tenon
