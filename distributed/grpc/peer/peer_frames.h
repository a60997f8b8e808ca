// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash_map.h"
#include "distributed/grpc/rpc/tensor_coding.h"
#include "proto/peer_service.pb.h"

namespace tenon {

/// A tensor with more bytes travels in parts of so many: a part is copied out of gRPC's memory
/// while the next is on its way, and that memory, which is still in the processor's cache, serves
/// again.
constexpr size_t kTensorPartBytes = 1 << 20;

/// Collects what goes into the next message of a peer stream (PeerFrames of peer_service.proto).
class FrameBatch {
 public:
  void Add(const cluster::PeerFrame& frame);
  /// The answer to call `call`; the tensor's bytes are not copied, nor added when they are apart.
  /// REQUIRES: tensor.plain.
  void AddTensor(uint64_t call, const EncodedTensor& tensor);
  /// The bytes of a tensor that are apart, from `begin` on.
  void AddPart(uint64_t call, const Tensor& tensor, size_t begin, size_t size);
  /// That the bytes of a tensor that are apart are in this process's memory.
  void AddPlace(uint64_t call, const Tensor& tensor);
  size_t num_bytes() const { return num_bytes_; }
  /// About how many of num_bytes() are in memory of the batch's own.
  size_t own_bytes() const { return own_bytes_; }
  /// The message; the batch is empty then.
  grpc::ByteBuffer Take();

 private:
  void AddHead(uint32_t tag, uint64_t call, uint32_t body_tag, size_t body_size);
  void AddShared(const Tensor& tensor, size_t begin, size_t size);
  void Flush();

  std::string text_;  // after the slices
  std::vector<grpc::Slice> slices_;
  size_t num_bytes_ = 0;
  size_t own_bytes_ = 0;
};

/// Gets the tensors of messages.
class TensorReceiver {
 public:
  /// The host memory that the tensor goes into which answers `call`; null when nobody waits for it:
  /// its bytes are skipped then and no memory is asked for.
  virtual Allocator* MemoryFor(uint64_t call) = 0;
  /// A tensor that was wanted; ResourceExhausted when there is no memory for it.
  virtual void OnTensor(uint64_t call, const Status& status, Tensor tensor, bool is_dead) = 0;
  /// A tensor whose bytes are still at `address` of the sender's memory; `arrived` has none where
  /// nobody waits for it. False when that memory cannot be read.
  virtual bool OnPlace(uint64_t call, uint64_t address, ArrivingTensor arrived) = 0;

 protected:
  ~TensorReceiver() = default;
};

/// Gets the parts of a message.
class FrameReceiver {
 public:
  virtual void OnFrame(cluster::PeerFrame frame) = 0;
  /// Whoever gets the tensors; null where none may come, which are malformed messages there.
  virtual TensorReceiver* tensor_receiver() { return nullptr; }

 protected:
  ~FrameReceiver() = default;
};

/// Takes the messages of one stream apart, in their order.
class FrameReader {
 public:
  /// Gives what `message` completes. InvalidArgument when it is malformed; parts before the fault
  /// have been given then.
  Status Read(grpc::ByteBuffer* message, FrameReceiver& receiver);
  Status Read(std::string_view message, FrameReceiver& receiver);
  /// Frees what has come of a tensor that nobody waits for any more; the rest of it is skipped.
  void Abandon(uint64_t call);

 private:
  /// A tensor whose parts are still coming.
  struct Arriving {
    ArrivingTensor head;
    bool wanted = true;
    size_t num_bytes = 0;  // so far
  };

  Status ReadFrom(google::protobuf::io::ZeroCopyInputStream* stream, size_t num_bytes,
                  FrameReceiver& receiver);
  bool ReadAll(google::protobuf::io::CodedInputStream& in, FrameReceiver& receiver);
  bool ReadTensor(google::protobuf::io::CodedInputStream& in, TensorReceiver& receiver);
  bool ReadPart(google::protobuf::io::CodedInputStream& in, TensorReceiver& receiver);
  bool ReadPlace(google::protobuf::io::CodedInputStream& in, TensorReceiver& receiver);

  flat_hash_map<uint64_t, Arriving> arriving_;  // by call
};

}  // namespace tenon
