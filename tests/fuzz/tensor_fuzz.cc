// SPDX-License-Identifier: Apache-2.0
//
// TensorProtos: read, written in both encodings, and read again.
#include <google/protobuf/stubs/logging.h>

#include "core/memory/memory_limit.h"
#include "core/proto/proto_io_tensor.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/message_mutation.h"

namespace tenon::testing {
namespace {

constexpr int64_t kTensorMemory = int64_t{256} << 20;
/// What is made of values that are not there only takes time.
constexpr int64_t kFilledBytes = 8 << 20;
/// Written and read again below this: larger ones only take time.
constexpr size_t kLargestWritten = 1 << 20;

void FuzzTensor(absl::Span<const uint8_t> data) {
  google::protobuf::SetLogHandler(nullptr);
  SetCpuMemoryLimit(kTensorMemory);
  TensorProto proto;
  if (!proto.ParseFromArray(data.data(), static_cast<int>(data.size()))) return;
  int64_t budget = kFilledBytes;
  const auto tensor = TensorFromProto(proto, &budget);
  TENON_CHECK(budget >= 0);
  if (!tensor.ok()) {
    TENON_CHECK(tensor.status().code() != StatusCode::kInternal, tensor.status().ToString());
    return;
  }
  TENON_CHECK(tensor->valid());
  TENON_CHECK(DTypeToProto(tensor->dtype()) == proto.dtype());
  if (tensor->num_bytes() > kLargestWritten) return;
  for (const TensorEncoding encoding : {TensorEncoding::kContent, TensorEncoding::kTyped}) {
    TensorProto written;
    const Status status = TensorToProto(*tensor, &written, encoding);
    TENON_CHECK(status.ok(), status.ToString());
    TensorProto sent;
    TENON_CHECK(sent.ParseFromString(written.SerializeAsString()));
    int64_t nothing = 0;  // all elements are there
    const auto again = TensorFromProto(sent, &nothing);
    TENON_CHECK(again.ok(), again.status().ToString());
    TENON_CHECK(SameTensor(*tensor, *again));
  }
}

void MutateTensorProto(std::string* data, size_t max_size, uint64_t seed) {
  Random random(seed);
  MutateAsMessage(TensorProto(), data, max_size, random);
}

std::vector<std::string> TensorSeeds() {
  const Tensor tensors[] = {Tensor::Of<float>({2, 2}, {1, 2, 3, 4}),
                            Tensor::Of<double>({2}, {0.5, -1}),
                            Tensor::Of<int32_t>({3}, {1, -2, 3}),
                            Tensor::Of<int64_t>({1, 2}, {int64_t{1} << 40, -1}),
                            Tensor::Of<uint8_t>({2}, {1, 255}),
                            Tensor::Of<bool>({2}, {true, false}),
                            Tensor::Of<std::string>({2}, {"text", ""}),
                            Tensor::Zeros(DType::kHalf, {2}),
                            Tensor::Zeros(DType::kBFloat16, {2}),
                            Tensor::Zeros(DType::kComplex64, {2}),
                            Tensor::Zeros(DType::kComplex128, {1}),
                            Tensor::Zeros(DType::kInt32, {0, int64_t{1} << 40})};
  std::vector<std::string> seeds;
  for (const Tensor& tensor : tensors) {
    for (const TensorEncoding encoding : {TensorEncoding::kContent, TensorEncoding::kTyped}) {
      TensorProto proto;
      TENON_CHECK(TensorToProto(tensor, &proto, encoding).ok());
      seeds.push_back(proto.SerializeAsString());
    }
  }
  TensorProto handle;
  handle.set_dtype(DT_RESOURCE);
  handle.mutable_tensor_shape();
  ResourceHandleProto* value = handle.add_resource_handle_val();
  value->set_device("/job:localhost/replica:0/task:0/device:CPU:0");
  value->set_name("name");
  auto* held = value->add_dtypes_and_shapes();
  held->set_dtype(DT_FLOAT);
  held->mutable_shape()->add_dim()->set_size(-1);
  seeds.push_back(handle.SerializeAsString());
  return seeds;
}

const bool tensor_registered = RegisterFuzzTarget(
    {.name = "tensor", .run = FuzzTensor, .mutate = MutateTensorProto, .seeds = TensorSeeds});

}  // namespace
}  // namespace tenon::testing
