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
constexpr uint32_t kPart = 3 << 3 | 2;
constexpr uint32_t kCall = 1 << 3 | 0;      // of a PeerTensor and of a PeerTensorPart
constexpr uint32_t kResponse = 2 << 3 | 2;  // of a PeerTensor
constexpr uint32_t kContent = 2 << 3 | 2;   // of a PeerTensorPart

}  // namespace

void FrameBatch::Add(const cluster::PeerFrame& frame) {
  const size_t size = frame.ByteSizeLong();
  num_bytes_ += size;
  AppendVarint(&text_, kFrame);
  AppendVarint(&text_, size);
  frame.AppendToString(&text_);
}

void FrameBatch::AddTensor(uint64_t call, const EncodedTensor& tensor) {
  AddHead(kTensor, call, kResponse, tensor.size());
  text_ += tensor.head;
  if (tensor.payload.valid() && !tensor.apart) {
    AddShared(tensor.payload, 0, tensor.payload.num_bytes());
  }
}

void FrameBatch::AddPart(uint64_t call, const Tensor& tensor, size_t begin, size_t size) {
  AddHead(kPart, call, kContent, size);
  AddShared(tensor, begin, size);
}

void FrameBatch::AddHead(uint32_t tag, uint64_t call, uint32_t body_tag, size_t body_size) {
  num_bytes_ += body_size;
  std::string head;
  AppendVarint(&head, kCall);
  AppendVarint(&head, call);
  AppendVarint(&head, body_tag);
  AppendVarint(&head, body_size);
  AppendVarint(&text_, tag);
  AppendVarint(&text_, head.size() + body_size);
  text_ += head;
}

void FrameBatch::AddShared(const Tensor& tensor, size_t begin, size_t size) {
  Flush();
  slices_.push_back(ShareBytes(tensor, begin, size));
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

Status FrameReader::Read(grpc::ByteBuffer* message, FrameReceiver& receiver) {
  grpc::ProtoBufferReader reader(message);
  CodedInputStream in(&reader);
  in.SetTotalBytesLimit(INT_MAX);
  if (ReadAll(in, receiver)) return OkStatus();
  return InvalidArgument("the peer's PeerFrames message of ", message->Length(),
                         " bytes cannot be read");
}

bool FrameReader::ReadAll(CodedInputStream& in, FrameReceiver& receiver) {
  while (const uint32_t tag = in.ReadTag()) {
    uint32_t size = 0;
    if (!in.ReadVarint32(&size) || size > INT_MAX) return false;
    const auto limit = in.PushLimit(static_cast<int>(size));
    if (tag == kFrame) {
      cluster::PeerFrame frame;
      if (!frame.MergeFromCodedStream(&in) || in.BytesUntilLimit() != 0) return false;
      receiver.OnFrame(std::move(frame));
    } else if (tag == kTensor) {
      if (!ReadTensor(in, receiver)) return false;
    } else if (tag != kPart || !ReadPart(in, receiver)) {
      return false;
    }
    if (in.BytesUntilLimit() != 0) return false;
    in.PopLimit(limit);
  }
  return in.ConsumedEntireMessage();
}

bool FrameReader::ReadTensor(CodedInputStream& in, FrameReceiver& receiver) {
  uint64_t call = 0;
  uint32_t size = 0;
  Arriving arrived;
  bool apart = false;
  if (in.ReadTag() != kCall || !in.ReadVarint64(&call) || in.ReadTag() != kResponse ||
      !in.ReadVarint32(&size)) {
    return false;
  }
  const auto limit = in.PushLimit(static_cast<int>(size));
  if (!ReadPlainTensorResponse(in, &arrived.tensor, &arrived.is_dead, &apart)) return false;
  in.PopLimit(limit);
  if (apart) return arriving_.emplace(call, std::move(arrived)).second;
  receiver.OnTensor(call, std::move(arrived.tensor), arrived.is_dead);
  return true;
}

bool FrameReader::ReadPart(CodedInputStream& in, FrameReceiver& receiver) {
  uint64_t call = 0;
  uint32_t size = 0;
  if (in.ReadTag() != kCall || !in.ReadVarint64(&call) || in.ReadTag() != kContent ||
      !in.ReadVarint32(&size)) {
    return false;
  }
  const auto found = arriving_.find(call);
  if (found == arriving_.end()) return false;
  Arriving& arriving = found->second;
  if (size > arriving.tensor.num_bytes() - arriving.num_bytes) return false;
  char* const bytes = static_cast<char*>(arriving.tensor.raw_data());
  if (!in.ReadRaw(bytes + arriving.num_bytes, static_cast<int>(size))) return false;
  arriving.num_bytes += size;
  if (arriving.num_bytes < arriving.tensor.num_bytes()) return true;
  const Arriving arrived = std::move(arriving);
  arriving_.erase(found);
  receiver.OnTensor(call, arrived.tensor, arrived.is_dead);
  return true;
}

}  // namespace tenon
