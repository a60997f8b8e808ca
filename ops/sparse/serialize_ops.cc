// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "core/proto/proto_io_tensor.h"
#include "ops/sparse/held_tensor.h"
#include "ops/sparse/sparse_batch.h"

namespace tenon {
namespace {

/// Makes elements `at` .. `at` + 2 of `out`, of string or variant, the parts.
Status WriteParts(const SparseParts& parts, Tensor* out, int64_t at) {
  for (const Tensor& part : {parts.indices, parts.values, parts.shape}) {
    if (out->dtype() == DType::kVariant) {
      const auto held = std::make_shared<HeldTensor>(part);
      TENON_RETURN_IF_ERROR(held->CountDepth(part));
      out->data<Variant>()[at++].value = held;
      continue;
    }
    TensorProto proto;
    TENON_RETURN_IF_ERROR(TensorToProto(part, &proto));
    out->data<TString>()[at++] = proto.SerializeAsString();
  }
  return OkStatus();
}

StatusOr<Tensor> ReadPart(const Tensor& in, int64_t at, int64_t* fill_budget) {
  if (in.dtype() == DType::kVariant) {
    const auto* held = dynamic_cast<const HeldTensor*>(in.data<Variant>()[at].value.get());
    if (held != nullptr) return held->tensor;
    return InvalidArgument("element ", at, " of the serialized sparse tensors holds no tensor");
  }
  TensorProto proto;
  const std::string_view text = in.data<TString>()[at];
  if (text.size() > INT32_MAX ||
      !proto.ParseFromArray(text.data(), static_cast<int>(text.size()))) {
    return InvalidArgument("Could not parse serialized proto, element ", at,
                           " of serialized_sparse");
  }
  return TensorFromProto(proto, fill_budget);
}

Status SerializeKernel(KernelContext& ctx) {
  TENON_RETURN_IF_ERROR(SparseTensor::Read(ctx));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, {3}));
  return WriteParts({ctx.input(0), ctx.input(1), ctx.input(2)}, out, 0);
}

Status SerializeManyKernel(KernelContext& ctx, const SparseTensor& in) {
  TENON_RETURN_IF_ERROR(in.DenseShape());
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, {in.rank() > 0 ? in.dims[0] : 0, 3}));
  return ForEachRow(ctx, in, [&](int64_t row, const SparseParts& parts) {
    return WriteParts(parts, out, 3 * row);
  });
}

Status DeserializeKernel(KernelContext& ctx, const Tensor& in) {
  if (in.rank() < 1) return InvalidArgument("Serialized sparse should have non-zero rank []");
  if (in.dim(in.rank() - 1) != 3) {
    return InvalidArgument("Serialized sparse should have 3 as the last dimension ", in.shape());
  }
  if (in.num_elements() == 0) {
    return InvalidArgument(
        "Serialized sparse should have at least 1 serialized tensor, but has a "
        "zero dimension ",
        in.shape());
  }
  std::vector<SparseParts> many(in.num_elements() / 3);
  int64_t at = 0, fill_budget = kMaxFillBytes;
  for (SparseParts& parts : many) {
    TENON_ASSIGN_OR_RETURN(parts.indices, ReadPart(in, at++, &fill_budget));
    TENON_ASSIGN_OR_RETURN(parts.values, ReadPart(in, at++, &fill_budget));
    TENON_ASSIGN_OR_RETURN(parts.shape, ReadPart(in, at++, &fill_budget));
  }
  return WriteTogether(ctx, many, in.shape().dims().first(in.rank() - 1));
}

Status SerializeManyShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape dense, SparseInputShape(c));
  return c.Return(PartialShape{dense.rank() > 0 ? dense.dim(0) : PartialShape::kUnknownDim, 3});
}

/// The serialized form of a sparse tensor, for examples.
Tensor SerializedExample() {
  Tensor out = *Tensor::Vector(std::vector<std::string>(6)).Reshaped({2, 3});
  const SparseParts parts = {Tensor::Of<int64_t>({1, 2}, {0, 1}), Tensor::Vector<float>({7}),
                             Tensor::Vector<int64_t>({2, 3})};
  TENON_CHECK(WriteParts(parts, &out, 0).ok());
  TENON_CHECK(WriteParts(parts, &out, 3).ok());
  return out;
}

}  // namespace

void RegisterSerializeSparse(OpRegistry& ops) {
  const Tensor indices = Tensor::Of<int64_t>({3, 2}, {0, 1, 2, 0, 2, 2});
  const Tensor shape = Tensor::Vector<int64_t>({4, 3});
  ops.Add("SerializeSparse", SerializeKernel).Example({indices, Shape{3}, shape});
  ops.Add("SerializeManySparse", SerializeManyShape, SerializeManyKernel)
      .Example({indices, Shape{3}, shape});
  for (const char* name : {"DeserializeSparse", "DeserializeManySparse"}) {
    ops.Add(name, DeserializeKernel).Example({SerializedExample()}, {{"dtype", DType::kFloat}});
  }
}

}  // namespace tenon
