// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

namespace tenon {

/// A protobuf message as gRPC sends it. False when it is too large to be one (2 GiB).
bool WriteMessage(const google::protobuf::MessageLite& message, grpc::ByteBuffer* bytes);

/// False when the bytes are not such a message.
bool ReadMessage(grpc::ByteBuffer* bytes, google::protobuf::MessageLite* message);

}  // namespace tenon
