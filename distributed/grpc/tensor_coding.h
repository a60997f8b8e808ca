// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "core/status.h"
#include "core/tensor.h"

namespace tenon {

// RecvTensorResponse messages (worker.proto) without a protobuf object in between: a tensor can be
// hundreds of megabytes, and its bytes should move once.

/// The message as gRPC sends it. The bytes of a plain tensor are not copied: the buffer stays
/// referenced until they have left.
StatusOr<grpc::ByteBuffer> EncodeTensorResponse(const Tensor& tensor, bool is_dead);

/// Reads such a message of any sender's. The bytes of a plain tensor are copied once, out of gRPC's
/// slices into an aligned buffer. InvalidArgument when it is malformed.
Status DecodeTensorResponse(grpc::ByteBuffer* message, Tensor* tensor, bool* is_dead);

}  // namespace tenon
