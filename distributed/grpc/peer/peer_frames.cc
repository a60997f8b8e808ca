// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer/peer_frames.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include "core/base/varint.h"
#include "distributed/grpc/rpc/wire.h"

namespace tenon {
namespace {

using google::protobuf::io::CodedInputStream;

// Tags of the fields, (number << 3) | wire type.
constexpr uint32_t kFrame = 1 << 3 | 2;
constexpr uint32_t kTensor = 2 << 3 | 2;
constexpr uint32_t kPart = 3 << 3 | 2;
constexpr uint32_t kPlace = 4 << 3 | 2;
constexpr uint32_t kCall = 1 << 3 | 0;  // of a PeerTensor, a PeerTensorPart and a PeerTensorPlace
constexpr uint32_t kResponse = 2 << 3 | 2;  // of a PeerTensor
constexpr uint32_t kContent = 2 << 3 | 2;   // of a PeerTensorPart
constexpr uint32_t kAddress = 2 << 3 | 0;   // of a PeerTensorPlace

/// Reads a tag; false when it is not `tag`.
bool ReadTag(CodedInputStream& in, uint32_t tag) {
  uint64_t found = 0;
  return ReadShortVarint(in, &found) && found == tag;
}

/// Tensors of one stream whose parts are still coming, also those that nobody waits for any more,
/// whose bytes are skipped.
constexpr size_t kMaxArriving = 1 << 16;
/// The frames of one message. Honest ends close a message at two mebibytes, and no frame of theirs
/// has fewer than six bytes; an empty one has two, and costs who reads it some hundred times as
/// many.
constexpr int kMaxFrames = 1 << 19;

}  // namespace

void FrameBatch::Add(const cluster::PeerFrame& frame) {
  const size_t size = frame.ByteSizeLong();
  num_bytes_ += size;
  own_bytes_ += size;
  AppendVarint(&text_, kFrame);
  AppendVarint(&text_, size);
  frame.AppendToString(&text_);
}

void FrameBatch::AddTensor(uint64_t call, const EncodedTensor& tensor) {
  AddHead(kTensor, call, kResponse, tensor.size());
  text_ += tensor.head;
  own_bytes_ += tensor.head.size();
  if (tensor.payload.valid() && !tensor.apart) {
    AddShared(tensor.payload, 0, tensor.payload.num_bytes());
  }
}

void FrameBatch::AddPart(uint64_t call, const Tensor& tensor, size_t begin, size_t size) {
  AddHead(kPart, call, kContent, size);
  AddShared(tensor, begin, size);
}

void FrameBatch::AddPlace(uint64_t call, const Tensor& tensor) {
  std::string place;
  AppendVarint(&place, kCall);
  AppendVarint(&place, call);
  AppendVarint(&place, kAddress);
  AppendVarint(&place, reinterpret_cast<uint64_t>(tensor.raw_data()));
  AppendVarint(&text_, kPlace);
  AppendVarint(&text_, place.size());
  text_ += place;
  num_bytes_ += place.size();
  own_bytes_ += place.size();
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
  num_bytes_ = own_bytes_ = 0;
  return message;
}

Status FrameReader::Read(grpc::ByteBuffer* message, FrameReceiver& receiver) {
  grpc::ProtoBufferReader reader(message);
  return ReadFrom(&reader, message->Length(), receiver);
}

Status FrameReader::Read(std::string_view message, FrameReceiver& receiver) {
  google::protobuf::io::ArrayInputStream stream(message.data(), static_cast<int>(message.size()));
  return ReadFrom(&stream, message.size(), receiver);
}

Status FrameReader::ReadFrom(google::protobuf::io::ZeroCopyInputStream* stream, size_t num_bytes,
                             FrameReceiver& receiver) {
  CodedInputStream in(stream);
  if (LimitToMessage(in, num_bytes) && ReadAll(in, receiver)) return OkStatus();
  return InvalidArgument("the peer's PeerFrames message of ", num_bytes, " bytes cannot be read");
}

bool FrameReader::ReadAll(CodedInputStream& in, FrameReceiver& receiver) {
  TagReader fields(in);
  for (int frames = 0; fields.Next(); ++frames) {
    if (frames == kMaxFrames) return false;
    const uint64_t tag = fields.tag();
    const FieldLimit field(in);
    if (!field.ok()) return false;
    if (tag == kFrame) {
      cluster::PeerFrame frame;
      if (!ReadFields(in, &frame)) return false;
      receiver.OnFrame(std::move(frame));
    } else {
      TensorReceiver* const tensors = receiver.tensor_receiver();
      if (tensors == nullptr) return false;
      if (tag == kTensor) {
        if (!ReadTensor(in, *tensors)) return false;
      } else if (tag == kPlace) {
        if (!ReadPlace(in, *tensors)) return false;
      } else if (tag != kPart || !ReadPart(in, *tensors)) {
        return false;
      }
    }
    if (in.BytesUntilLimit() != 0) return false;
  }
  return fields.ok();
}

bool FrameReader::ReadTensor(CodedInputStream& in, TensorReceiver& receiver) {
  uint64_t call = 0;
  if (!ReadTag(in, kCall) || !in.ReadVarint64(&call) || !ReadTag(in, kResponse) ||
      arriving_.contains(call)) {
    return false;
  }
  Arriving arrived;
  Allocator* const memory = receiver.MemoryFor(call);
  arrived.wanted = memory != nullptr;
  {
    const FieldLimit field(in);
    if (!field.ok() || !ReadPlainTensorResponse(in, Apart::kAccept, memory, &arrived.head)) {
      return false;
    }
  }
  if (arrived.head.apart) {
    if (arriving_.size() == kMaxArriving) return false;
    arriving_.emplace(call, std::move(arrived));
    return true;
  }
  if (arrived.wanted) {
    ArrivingTensor& head = arrived.head;
    receiver.OnTensor(call, head.status, std::move(head.tensor), head.is_dead);
  }
  return true;
}

bool FrameReader::ReadPart(CodedInputStream& in, TensorReceiver& receiver) {
  uint64_t call = 0;
  int size = 0;
  if (!ReadTag(in, kCall) || !in.ReadVarint64(&call) || !ReadTag(in, kContent) ||
      !ReadLength(in, &size)) {
    return false;
  }
  const auto found = arriving_.find(call);
  if (found == arriving_.end()) return false;
  Arriving& arriving = found->second;
  const auto num_bytes = static_cast<size_t>(size);
  if (num_bytes > arriving.head.num_bytes - arriving.num_bytes) return false;
  if (!arriving.head.tensor.valid()) {
    if (!in.Skip(size)) return false;
  } else {
    Tensor& tensor = arriving.head.tensor;
    if (!in.ReadRaw(static_cast<char*>(tensor.raw_data()) + arriving.num_bytes, size)) return false;
    NormaliseBools(tensor, arriving.num_bytes, num_bytes);
  }
  arriving.num_bytes += num_bytes;
  if (arriving.num_bytes < arriving.head.num_bytes) return true;
  Arriving arrived = std::move(arriving);
  arriving_.erase(found);
  if (arrived.wanted) {
    ArrivingTensor& head = arrived.head;
    receiver.OnTensor(call, head.status, std::move(head.tensor), head.is_dead);
  }
  return true;
}

void FrameReader::Abandon(uint64_t call) {
  const auto found = arriving_.find(call);
  if (found == arriving_.end()) return;
  found->second.wanted = false;
  found->second.head.tensor = Tensor();
}

bool FrameReader::ReadPlace(CodedInputStream& in, TensorReceiver& receiver) {
  uint64_t call = 0, address = 0;
  if (!ReadTag(in, kCall) || !in.ReadVarint64(&call) || !ReadTag(in, kAddress) ||
      !in.ReadVarint64(&address)) {
    return false;
  }
  const auto found = arriving_.find(call);
  if (found == arriving_.end() || found->second.num_bytes > 0) return false;
  Arriving arrived = std::move(found->second);
  arriving_.erase(found);
  return receiver.OnPlace(call, address, std::move(arrived.head));
}

}  // namespace tenon
