// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <string>
#include <vector>

#include "distributed/grpc/tensor_coding.h"
#include "proto/peer_service.pb.h"

namespace tenon {

/// Collects what goes into the next message of a peer stream (PeerFrames of peer_service.proto).
class FrameBatch {
 public:
  void Add(const cluster::PeerFrame& frame);
  /// The answer to call `call`; the tensor's bytes are not copied. REQUIRES: tensor.plain.
  void AddTensor(uint64_t call, EncodedTensor tensor);
  size_t num_bytes() const { return num_bytes_; }
  /// The message; the batch is empty then.
  grpc::ByteBuffer Take();

 private:
  void Flush();

  std::string text_;  // after the slices
  std::vector<grpc::Slice> slices_;
  size_t num_bytes_ = 0;
};

/// Gets the parts of a message.
class FrameReceiver {
 public:
  virtual void OnFrame(cluster::PeerFrame frame) = 0;
  virtual void OnTensor(uint64_t call, Tensor tensor, bool is_dead) = 0;

 protected:
  ~FrameReceiver() = default;
};

/// Takes a message apart. InvalidArgument when it is malformed; parts before the fault have been
/// given then.
Status ReadFrames(grpc::ByteBuffer* message, FrameReceiver& receiver);

}  // namespace tenon
