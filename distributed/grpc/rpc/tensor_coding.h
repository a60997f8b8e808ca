// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "core/tensor/tensor.h"
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
  /// The payload does not belong to the message: it is left to the transport.
  bool apart = false;

  size_t size() const {
    return head.size() + (payload.valid() && !apart ? payload.num_bytes() : 0);
  }
};
/// With more than `apart_above` bytes, those of a plain tensor are left out of the message.
/// ResourceExhausted when what is left is more than a message can be.
StatusOr<EncodedTensor> EncodeTensor(const Tensor& tensor, bool is_dead,
                                     size_t apart_above = SIZE_MAX);

/// ResourceExhausted when tensors of `num_bytes` together are more than one message can hold; to be
/// asked before they are copied into one.
Status CheckFitsMessage(size_t num_bytes);

/// A slice over `size` of the tensor's bytes from `begin` on; it holds a reference to the buffer
/// until they have left.
grpc::Slice ShareBytes(const Tensor& tensor, size_t begin, size_t size);

/// The message as gRPC sends it.
grpc::ByteBuffer ToByteBuffer(const EncodedTensor& tensor);

/// Reads such a message of any sender's. The bytes of a plain tensor are copied once, out of gRPC's
/// slices into an aligned buffer of `memory`, which is the host's. InvalidArgument when it is
/// malformed, ResourceExhausted when there is no memory for it.
Status DecodeTensorResponse(grpc::ByteBuffer* message, Allocator& memory, Tensor* tensor,
                            bool* is_dead);

/// What a response holds; any sender's.
Status ReadTensorResponse(const RecvTensorResponse& response, Tensor* tensor, bool* is_dead);

/// A plain tensor on its way in.
struct ArrivingTensor {
  Tensor tensor;  // invalid when `status` is not OK, and of a dead one perhaps
  bool is_dead = false;
  /// The bytes do not come with the message: the tensor's memory is to be filled.
  bool apart = false;
  size_t num_bytes = 0;
  /// Not OK when there is no memory for the tensor; its bytes have been skipped.
  Status status;
};

/// What to do with bytes that have been left out of a message, see EncodeTensor.
enum class Apart { kRefuse, kAccept };

/// Reads the RecvTensorResponse that `in` is limited to when it is laid out as EncodeTensor does
/// for plain tensors; otherwise false. The tensor goes into `memory`, which is the host's; when it
/// is null no memory is asked for, and the tensor's bytes are skipped.
bool ReadPlainTensorResponse(google::protobuf::io::CodedInputStream& in, Apart apart,
                             Allocator* memory, ArrivingTensor* out);

/// Makes the bytes of a tensor of DType::kBool, [begin, begin + size), 0 or 1, as C++ wants them;
/// those of other tensors stay as they are.
void NormaliseBools(Tensor& tensor, size_t begin, size_t size);

}  // namespace tenon
