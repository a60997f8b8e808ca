// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/tensor_coding.h"

#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <chrono>

#include "core/base/varint.h"
#include "core/proto/proto_io_tensor.h"
#include "distributed/grpc/polling/handover.h"
#include "distributed/grpc/rpc/wire.h"
#include "runtime/device/machine_clock.h"

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
             MachineClock().WallNow().time_since_epoch())
      .count();
}

/// Reads the dtype and shape that come before the bytes of a TensorProto, field by field.
struct TensorHead {
  DType dtype = DType::kInvalid;
  Shape shape;
  bool has_shape = false;

  bool ReadDType(CodedInputStream& in) {
    uint32_t number;
    if (dtype != DType::kInvalid) return false;
    if (!in.ReadVarint32(&number)) return false;  // size: it is no length but a dtype
    const auto known = DTypeFromNumber(static_cast<int>(number));
    if (!known || IsRef(*known) || !IsPlain(*known)) return false;
    dtype = *known;
    return true;
  }
  bool ReadShape(CodedInputStream& in) {
    const FieldLimit field(in);
    TensorShapeProto proto;
    // A second shape adds its dimensions to the first one's.
    if (has_shape || !field.ok() || !ReadFields(in, &proto)) return false;
    auto parsed = ShapeFromProto(proto);
    if (!parsed.ok() || dtype == DType::kInvalid) return false;
    shape = *std::move(parsed);
    has_shape = true;
    return true;
  }
  /// False when no memory has so many bytes.
  bool NumBytes(size_t* bytes) const {
    return !__builtin_mul_overflow(static_cast<size_t>(shape.num_elements()), SizeOf(dtype), bytes);
  }
};

/// Asks for the tensor's memory; whether it can be filled now.
///
/// gRPC's slices are not lent to a tensor instead, even where that saves the one copy: a device
/// would have to stage what is not pinned, piece by piece on a thread of its driver, and a
/// processor wants elements aligned and in one piece. And slices that a slow step holds are the
/// memory that the connection needs for what comes next.
bool MakeRoom(const TensorHead& head, Allocator* memory, ArrivingTensor* out) {
  if (memory == nullptr) return false;
  auto room = Tensor::Allocate(*memory, head.dtype, head.shape);
  out->status = room.status();
  if (room.ok()) out->tensor = *std::move(room);
  return out->status.ok();
}

/// Reads the TensorProto that `in` is limited to. False when something is not as we write it; the
/// caller then parses the whole message in the ordinary way.
bool ReadTensor(CodedInputStream& in, Apart apart, Allocator* memory, ArrivingTensor* out) {
  TensorHead head;
  bool has_content = false;
  TagReader fields(in);
  while (fields.Next()) {
    const uint64_t tag = fields.tag();
    if (tag == kTensorDType) {
      if (!head.ReadDType(in)) return false;
    } else if (tag == kTensorShape) {
      if (!head.ReadShape(in)) return false;
    } else if (tag == kTensorContent) {
      int size = 0;
      if (!head.has_shape || has_content || !head.NumBytes(&out->num_bytes) ||
          !ReadLength(in, &size) || static_cast<size_t>(size) != out->num_bytes) {
        return false;
      }
      has_content = true;
      if (!MakeRoom(head, memory, out)) {
        if (!in.Skip(size)) return false;
      } else if (!in.ReadRaw(out->tensor.raw_data(), size)) {
        return false;
      }
    } else {
      return false;
    }
  }
  if (!fields.ok()) return false;
  if (has_content) {
    if (out->tensor.valid()) NormaliseBools(out->tensor, 0, out->num_bytes);
    return true;
  }
  if (!head.has_shape || !head.NumBytes(&out->num_bytes)) return false;
  out->apart = out->num_bytes > 0;
  if (out->apart && apart == Apart::kRefuse) return false;
  MakeRoom(head, memory, out);
  return true;
}

Status TooLarge(const Tensor& tensor) {
  return ResourceExhausted("a tensor ", ToString(tensor.dtype()), tensor.shape().ToString(), " of ",
                           tensor.num_bytes(),
                           " bytes is larger than a message can be: ", kMaxMessageBytes, " bytes");
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

Status CheckFitsMessage(size_t num_bytes) {
  if (num_bytes <= kMaxMessageBytes) return OkStatus();
  return ResourceExhausted("the tensors of one message take ", num_bytes, " bytes; it can hold ",
                           kMaxMessageBytes, ": feed or fetch fewer at a time");
}

StatusOr<EncodedTensor> EncodeTensor(const Tensor& tensor, bool is_dead, size_t apart_above) {
  EncodedTensor out;
  if (!tensor.valid() || !IsPlain(tensor.dtype())) {
    RecvTensorResponse response;
    response.set_is_dead(is_dead);
    response.set_send_start_micros(NowMicros());
    if (tensor.valid()) TENON_RETURN_IF_ERROR(TensorToProto(tensor, response.mutable_tensor()));
    if (response.ByteSizeLong() > kMaxMessageBytes) return TooLarge(tensor);
    out.head = response.SerializeAsString();
    return out;
  }
  out.plain = true;
  TensorShapeProto shape;
  ShapeToProto(tensor.shape(), &shape);
  const size_t bytes = tensor.num_bytes();
  out.apart = bytes > apart_above;
  if (!out.apart && bytes > kMaxMessageBytes) return TooLarge(tensor);
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

void NormaliseBools(Tensor& tensor, size_t begin, size_t size) {
  if (tensor.dtype() != DType::kBool) return;
  auto* const bytes = static_cast<uint8_t*>(tensor.raw_data()) + begin;
  for (size_t i = 0; i < size; ++i) bytes[i] = bytes[i] != 0;
}

bool ReadPlainTensorResponse(CodedInputStream& in, Apart apart, Allocator* memory,
                             ArrivingTensor* out) {
  bool has_tensor = false;
  TagReader fields(in);
  while (fields.Next()) {
    const uint64_t tag = fields.tag();
    uint64_t number;
    if (tag == kResponseIsDead) {
      if (!in.ReadVarint64(&number)) return false;
      out->is_dead = number != 0;
    } else if (tag == kResponseSendStart) {
      if (!in.ReadVarint64(&number)) return false;
    } else if (tag == kResponseTensor) {
      const FieldLimit field(in);
      if (has_tensor || !field.ok() || !ReadTensor(in, apart, memory, out)) return false;
      has_tensor = true;
    } else {
      return false;
    }
  }
  return fields.ok() && (has_tensor || out->is_dead);
}

Status ReadTensorResponse(const RecvTensorResponse& response, Tensor* tensor, bool* is_dead) {
  *is_dead = response.is_dead();
  if (*is_dead && response.tensor().dtype() == DT_INVALID) return OkStatus();
  TENON_ASSIGN_OR_RETURN(*tensor, TensorFromProto(response.tensor()));
  return OkStatus();
}

Status DecodeTensorResponse(grpc::ByteBuffer* message, Allocator& memory, Tensor* tensor,
                            bool* is_dead) {
  {
    grpc::ProtoBufferReader reader(message);
    CodedInputStream in(&reader);
    ArrivingTensor arrived;
    if (LimitToMessage(in, message->Length()) &&
        ReadPlainTensorResponse(in, Apart::kRefuse, &memory, &arrived)) {
      *tensor = std::move(arrived.tensor);
      *is_dead = arrived.is_dead;
      return arrived.status;
    }
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
