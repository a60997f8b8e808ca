// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer_frames.h"

#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <climits>

#include "core/varint.h"

namespace tenon {
namespace {

using google::protobuf::io::CodedInputStream;

// Tags of the fields, (number << 3) | wire type.
constexpr uint32_t kFrame = 1 << 3 | 2;
constexpr uint32_t kTensor = 2 << 3 | 2;
constexpr uint32_t kTensorCall = 1 << 3 | 0;
constexpr uint32_t kTensorResponse = 2 << 3 | 2;

bool ReadTensorFrame(CodedInputStream& in, FrameReceiver& receiver) {
  uint64_t call = 0;
  uint32_t size = 0;
  Tensor tensor;
  bool is_dead = false;
  if (in.ReadTag() != kTensorCall || !in.ReadVarint64(&call) || in.ReadTag() != kTensorResponse ||
      !in.ReadVarint32(&size)) {
    return false;
  }
  const auto limit = in.PushLimit(static_cast<int>(size));
  if (!ReadPlainTensorResponse(in, &tensor, &is_dead)) return false;
  in.PopLimit(limit);
  receiver.OnTensor(call, std::move(tensor), is_dead);
  return in.ReadTag() == 0;
}

bool ReadAll(CodedInputStream& in, FrameReceiver& receiver) {
  while (const uint32_t tag = in.ReadTag()) {
    uint32_t size = 0;
    if ((tag != kFrame && tag != kTensor) || !in.ReadVarint32(&size) || size > INT_MAX)
      return false;
    const auto limit = in.PushLimit(static_cast<int>(size));
    if (tag == kFrame) {
      cluster::PeerFrame frame;
      if (!frame.MergeFromCodedStream(&in) || in.BytesUntilLimit() != 0) return false;
      receiver.OnFrame(std::move(frame));
    } else if (!ReadTensorFrame(in, receiver)) {
      return false;
    }
    in.PopLimit(limit);
  }
  return in.ConsumedEntireMessage();
}

}  // namespace

void FrameBatch::Add(const cluster::PeerFrame& frame) {
  const size_t size = frame.ByteSizeLong();
  num_bytes_ += size;
  AppendVarint(&text_, kFrame);
  AppendVarint(&text_, size);
  frame.AppendToString(&text_);
}

void FrameBatch::AddTensor(uint64_t call, EncodedTensor tensor) {
  num_bytes_ += tensor.size();
  std::string head;
  AppendVarint(&head, kTensorCall);
  AppendVarint(&head, call);
  AppendVarint(&head, kTensorResponse);
  AppendVarint(&head, tensor.size());
  AppendVarint(&text_, kTensor);
  AppendVarint(&text_, head.size() + tensor.size());
  text_ += head;
  text_ += tensor.head;
  if (!tensor.payload.valid()) return;
  Flush();
  slices_.push_back(ShareBytes(tensor.payload));
}

void FrameBatch::Flush() {
  if (text_.empty()) return;
  slices_.emplace_back(text_);
  text_.clear();
}

grpc::ByteBuffer FrameBatch::Take() {
  Flush();
  const grpc::ByteBuffer message(slices_.data(), slices_.size());
  slices_.clear();
  num_bytes_ = 0;
  return message;
}

Status ReadFrames(grpc::ByteBuffer* message, FrameReceiver& receiver) {
  grpc::ProtoBufferReader reader(message);
  CodedInputStream in(&reader);
  in.SetTotalBytesLimit(INT_MAX);
  if (ReadAll(in, receiver)) return OkStatus();
  return InvalidArgument("the peer's PeerFrames message of ", message->Length(),
                         " bytes cannot be read");
}

}  // namespace tenon
