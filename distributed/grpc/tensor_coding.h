// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <string>

#include "core/status.h"
#include "core/tensor.h"
#include "proto/worker.pb.h"

namespace google::protobuf::io {
class CodedInputStream;
}

namespace tenon {

// RecvTensorResponse messages (worker.proto) without a protobuf object in between: a tensor can be
// hundreds of megabytes, and its bytes should move once.

/// A RecvTensorResponse as bytes: `head`, then those of `payload`, which are not copied.
struct EncodedTensor {
  std::string head;
  Tensor payload;  // invalid when all is in the head
  /// Whether ReadPlainTensorResponse can read it.
  bool plain = false;

  size_t size() const { return head.size() + (payload.valid() ? payload.num_bytes() : 0); }
};
StatusOr<EncodedTensor> EncodeTensor(const Tensor& tensor, bool is_dead);

/// A slice over the tensor's bytes that holds a reference to its buffer until they have left.
grpc::Slice ShareBytes(const Tensor& tensor);

/// The message as gRPC sends it.
grpc::ByteBuffer ToByteBuffer(const EncodedTensor& tensor);

/// Reads such a message of any sender's. The bytes of a plain tensor are copied once, out of gRPC's
/// slices into an aligned buffer. InvalidArgument when it is malformed.
Status DecodeTensorResponse(grpc::ByteBuffer* message, Tensor* tensor, bool* is_dead);

/// What a response holds; any sender's.
Status ReadTensorResponse(const RecvTensorResponse& response, Tensor* tensor, bool* is_dead);

/// Reads the RecvTensorResponse that `in` is limited to when it is laid out as EncodeTensor does
/// for plain tensors; otherwise false.
bool ReadPlainTensorResponse(google::protobuf::io::CodedInputStream& in, Tensor* tensor,
                             bool* is_dead);

}  // namespace tenon
