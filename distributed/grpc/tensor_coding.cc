// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/tensor_coding.h"

#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <chrono>
#include <climits>

#include "core/proto_io_tensor.h"
#include "core/varint.h"
#include "distributed/grpc/handover.h"

namespace tenon {
namespace {

using google::protobuf::io::CodedInputStream;

/// Below this a copy is cheaper than a slice of its own.
constexpr size_t kMinSharedBytes = 1024;

// Tags of the fields, (number << 3) | wire type.
constexpr uint32_t kResponseTensor = 1 << 3 | 2;
constexpr uint32_t kResponseIsDead = 2 << 3 | 0;
constexpr uint32_t kResponseSendStart = 3 << 3 | 0;
constexpr uint32_t kTensorDType = 1 << 3 | 0;
constexpr uint32_t kTensorShape = 2 << 3 | 2;
constexpr uint32_t kTensorContent = 4 << 3 | 2;

int64_t NowMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Reads the TensorProto that `in` is limited to. False when something is not as we write it; the
/// caller then parses the whole message in the ordinary way.
bool ReadTensor(CodedInputStream& in, Tensor* tensor, bool* apart) {
  DType dtype = DType::kInvalid;
  Shape shape;
  bool has_shape = false;
  while (const uint32_t tag = in.ReadTag()) {
    if (tag == kTensorDType) {
      uint32_t number;
      if (!in.ReadVarint32(&number)) return false;
      const auto known = DTypeFromNumber(static_cast<int>(number));
      if (!known || !IsPlain(*known)) return false;
      dtype = *known;
    } else if (tag == kTensorShape) {
      uint32_t size;
      std::string text;
      TensorShapeProto proto;
      if (!in.ReadVarint32(&size) || !in.ReadString(&text, static_cast<int>(size)) ||
          !proto.ParseFromString(text)) {
        return false;
      }
      auto parsed = ShapeFromProto(proto);
      if (!parsed.ok()) return false;
      shape = *std::move(parsed);
      if (dtype == DType::kInvalid) return false;
      has_shape = true;
    } else if (tag == kTensorContent) {
      uint32_t size;
      if (!has_shape || tensor->valid() || !in.ReadVarint32(&size) ||
          size != static_cast<uint64_t>(shape.num_elements()) * SizeOf(dtype)) {
        return false;
      }
      auto memory = Tensor::Allocate(CpuAllocator(), dtype, shape);
      if (!memory.ok() || !in.ReadRaw(memory->raw_data(), static_cast<int>(size))) return false;
      *tensor = *std::move(memory);
    } else {
      return false;
    }
  }
  if (!tensor->valid() && has_shape && (shape.num_elements() == 0 || apart != nullptr)) {
    auto memory = Tensor::Allocate(CpuAllocator(), dtype, shape);
    if (!memory.ok()) return false;
    *tensor = *std::move(memory);
    if (apart != nullptr) *apart = shape.num_elements() > 0;
  }
  return tensor->valid();
}

}  // namespace

grpc::Slice ShareBytes(const Tensor& tensor, size_t begin, size_t size) {
  auto* holder = new Tensor(tensor);
  GiveToGrpc(holder);
  const auto release = [](void* p) {
    TakeFromGrpc(p);
    delete static_cast<Tensor*>(p);
  };
  return grpc::Slice(static_cast<char*>(holder->raw_data()) + begin, size, release, holder);
}

StatusOr<EncodedTensor> EncodeTensor(const Tensor& tensor, bool is_dead, size_t apart_above) {
  EncodedTensor out;
  if (!tensor.valid() || !IsPlain(tensor.dtype()) || tensor.num_bytes() > INT_MAX / 2) {
    RecvTensorResponse response;
    response.set_is_dead(is_dead);
    response.set_send_start_micros(NowMicros());
    if (tensor.valid()) TENON_RETURN_IF_ERROR(TensorToProto(tensor, response.mutable_tensor()));
    out.head = response.SerializeAsString();
    return out;
  }
  out.plain = true;
  TensorShapeProto shape;
  ShapeToProto(tensor.shape(), &shape);
  const size_t bytes = tensor.num_bytes();
  out.apart = bytes > apart_above;
  std::string head;  // of the TensorProto, up to the bytes
  AppendVarint(&head, kTensorDType);
  AppendVarint(&head, static_cast<uint64_t>(tensor.dtype()));
  AppendVarint(&head, kTensorShape);
  AppendVarint(&head, shape.ByteSizeLong());
  shape.AppendToString(&head);
  if (bytes > 0 && !out.apart) {
    AppendVarint(&head, kTensorContent);
    AppendVarint(&head, bytes);
  }
  if (is_dead) {
    AppendVarint(&out.head, kResponseIsDead);
    AppendVarint(&out.head, 1);
  }
  AppendVarint(&out.head, kResponseSendStart);
  AppendVarint(&out.head, static_cast<uint64_t>(NowMicros()));
  AppendVarint(&out.head, kResponseTensor);
  AppendVarint(&out.head, head.size() + (out.apart ? 0 : bytes));
  out.head += head;
  if (bytes < kMinSharedBytes && !out.apart) {
    out.head.append(static_cast<const char*>(tensor.raw_data()), bytes);
  } else {
    out.payload = tensor;
  }
  return out;
}

grpc::ByteBuffer ToByteBuffer(const EncodedTensor& tensor) {
  const grpc::Slice head(tensor.head);
  if (!tensor.payload.valid()) return grpc::ByteBuffer(&head, 1);
  const grpc::Slice slices[] = {head, ShareBytes(tensor.payload, 0, tensor.payload.num_bytes())};
  return grpc::ByteBuffer(slices, 2);
}

bool ReadPlainTensorResponse(CodedInputStream& in, Tensor* tensor, bool* is_dead, bool* apart) {
  while (const uint32_t tag = in.ReadTag()) {
    uint64_t number;
    if (tag == kResponseIsDead) {
      if (!in.ReadVarint64(&number)) return false;
      *is_dead = number != 0;
    } else if (tag == kResponseSendStart) {
      if (!in.ReadVarint64(&number)) return false;
    } else if (tag == kResponseTensor) {
      uint32_t size;
      if (!in.ReadVarint32(&size)) return false;
      const auto limit = in.PushLimit(static_cast<int>(size));
      if (!ReadTensor(in, tensor, apart)) return false;
      in.PopLimit(limit);
    } else {
      return false;
    }
  }
  return in.ConsumedEntireMessage() && (tensor->valid() || *is_dead);
}

Status ReadTensorResponse(const RecvTensorResponse& response, Tensor* tensor, bool* is_dead) {
  *is_dead = response.is_dead();
  if (*is_dead && response.tensor().dtype() == DT_INVALID) return OkStatus();
  TENON_ASSIGN_OR_RETURN(*tensor, TensorFromProto(response.tensor()));
  return OkStatus();
}

Status DecodeTensorResponse(grpc::ByteBuffer* message, Tensor* tensor, bool* is_dead) {
  *is_dead = false;
  {
    grpc::ProtoBufferReader reader(message);
    CodedInputStream in(&reader);
    in.SetTotalBytesLimit(INT_MAX);
    if (ReadPlainTensorResponse(in, tensor, is_dead, nullptr)) return OkStatus();
  }
  *tensor = Tensor();
  RecvTensorResponse response;
  grpc::ProtoBufferReader reader(message);
  if (!response.ParseFromZeroCopyStream(&reader)) {
    return InvalidArgument("the peer's RecvTensorResponse cannot be read");
  }
  return ReadTensorResponse(response, tensor, is_dead);
}

}  // namespace tenon
