// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/message_bytes.h"

#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include "distributed/grpc/rpc/wire.h"

namespace tenon {
namespace {

/// Messages beyond this are written in several slices.
constexpr int kSliceBytes = 1 << 20;

}  // namespace

bool WriteMessage(const google::protobuf::MessageLite& message, grpc::ByteBuffer* bytes) {
  const size_t size = message.ByteSizeLong();
  if (size > kMaxMessageBytes) return false;
  if (size == 0) {  // a buffer without slices is no message at all
    const grpc::Slice empty;
    *bytes = grpc::ByteBuffer(&empty, 1);
    return true;
  }
  grpc::ProtoBufferWriter writer(bytes, kSliceBytes, static_cast<int>(size));
  return message.SerializeToZeroCopyStream(&writer);
}

bool ReadMessage(grpc::ByteBuffer* bytes, google::protobuf::MessageLite* message) {
  grpc::ProtoBufferReader reader(bytes);
  return message->ParseFromZeroCopyStream(&reader);
}

}  // namespace tenon
