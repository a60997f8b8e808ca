// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "core/tensor/variant.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/ragged/ragged_ops.h"
#include "ops/ragged/splits.h"
#include "ops/variants.h"

namespace tenon {
namespace {

/// A ragged tensor: the splits of its dimensions, the outermost first, and its values.
class RaggedVariant final : public VariantValue {
 public:
  static constexpr std::string_view kTypeName = "RaggedTensorVariant";

  RaggedVariant(std::vector<Tensor> splits, Tensor values)
      : splits_(std::move(splits)), values_(std::move(values)) {}
  std::string_view type_name() const override { return kTypeName; }
  StatusOr<VariantData> Encode() const override {
    VariantData data = {.type_name = std::string(kTypeName), .metadata = {}, .tensors = splits_};
    data.tensors.push_back(values_);
    return data;
  }
  static StatusOr<VariantRef> Decode(VariantData data) {
    if (data.tensors.empty()) return InvalidArgument("a ragged tensor came without values");
    Tensor values = std::move(data.tensors.back());
    data.tensors.pop_back();
    return std::make_shared<RaggedVariant>(std::move(data.tensors), std::move(values));
  }
  StatusOr<VariantRef> ZerosLike() const override {
    TENON_ASSIGN_OR_RETURN(Tensor zeros,
                           Tensor::Allocate(CpuAllocator(), values_.dtype(), values_.shape()));
    ZeroElements(&zeros);
    return std::make_shared<RaggedVariant>(splits_, std::move(zeros));
  }

  const std::vector<Tensor>& splits() const { return splits_; }
  const Tensor& values() const { return values_; }

 private:
  std::vector<Tensor> splits_;
  Tensor values_;
};

/// InvalidArgument when `values` would lie too deep.
StatusOr<VariantRef> MakeRagged(std::vector<Tensor> splits, const Tensor& values) {
  const auto made = std::make_shared<RaggedVariant>(std::move(splits), values);
  TENON_RETURN_IF_ERROR(made->CountDepth(values));
  return made;
}

/// Rows [begin, end) of a ragged tensor, as a ragged tensor.
StatusOr<VariantRef> RaggedRows(KernelContext& ctx, absl::Span<const IndexVector> splits,
                                const Tensor& values, DType type, int64_t begin, int64_t end) {
  std::vector<Tensor> parts;
  for (const IndexVector& level : splits) {
    TENON_ASSIGN_OR_RETURN(Tensor part, ctx.AllocateTemp(type, {end - begin + 1}));
    IndexVector ends(level.begin() + begin, level.begin() + end + 1);
    begin = level[begin];
    end = level[end];
    for (int64_t& v : ends) v -= begin;
    WriteIntegers(ends, &part);
    parts.push_back(std::move(part));
  }
  TENON_ASSIGN_OR_RETURN(Tensor copy, values.Slice(begin, end).Copy());
  return MakeRagged(std::move(parts), copy);
}

Status RaggedToVariantKernel(KernelContext& ctx, bool batched) {
  const int rank = ctx.num_inputs() - 1;
  const Tensor& values = ctx.input(rank);
  if (values.rank() < 1) return InvalidArgument("rt_dense_values must have rows, found a scalar");
  TENON_ASSIGN_OR_RETURN(const std::vector<IndexVector> splits,
                         ReadNestedSplits(ctx, rank, values.dim(0), true));
  const DType type = rank > 0 ? ctx.input(0).dtype() : DType::kInt64;
  if (!batched) {
    std::vector<Tensor> inputs;
    for (int i = 0; i < rank; ++i) inputs.push_back(ctx.input(i));
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    TENON_ASSIGN_OR_RETURN(out->data<Variant>()->value, MakeRagged(std::move(inputs), values));
    return OkStatus();
  }
  const int64_t rows = rank > 0 ? static_cast<int64_t>(splits[0].size()) - 1 : values.dim(0);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, {rows}));
  for (int64_t i = 0; i < rows && !Interrupted(); ++i) {
    VariantRef& element = out->data<Variant>()[i].value;
    if (rank > 0) {
      TENON_ASSIGN_OR_RETURN(element, RaggedRows(ctx, absl::MakeConstSpan(splits).subspan(1),
                                                 values, type, splits[0][i], splits[0][i + 1]));
      continue;
    }
    TENON_ASSIGN_OR_RETURN(const Tensor row, values.Slice(i, i + 1).Copy());
    TENON_ASSIGN_OR_RETURN(Tensor element_values, row.Reshaped(values.shape().WithoutDim(0)));
    TENON_ASSIGN_OR_RETURN(element, MakeRagged({}, element_values));
  }
  return OkStatus();
}

/// The ragged tensors that the elements of `t` hold, of such a rank and such types.
StatusOr<std::vector<const RaggedVariant*>> RaggedElements(const Tensor& t, int64_t rank,
                                                           DType values, DType splits) {
  std::vector<const RaggedVariant*> parts;
  for (const Variant& v : t.flat<Variant>()) {
    const auto* const part = dynamic_cast<const RaggedVariant*>(v.value.get());
    if (part == nullptr) return InvalidArgument("an element of the variant is no ragged tensor");
    bool fits = static_cast<int64_t>(part->splits().size()) == rank &&
                part->values().dtype() == values && part->values().rank() >= 1;
    for (const Tensor& s : part->splits()) {
      fits = fits && s.dtype() == splits && s.rank() == 1 && s.dim(0) >= 1;
    }
    if (!fits) {
      return InvalidArgument("an element is ragged in ", part->splits().size(), " dimensions of ",
                             part->values().dtype(), part->values().shape(), ", wanted ", rank,
                             " with splits of ", splits, " and rows of ", values);
    }
    parts.push_back(part);
  }
  return parts;
}

/// One tensor after the other along their rows; of none, [0].
Status ConcatValues(KernelContext& ctx, int output, const CountedVector<Tensor>& parts) {
  DimVector dims = {0};
  if (!parts.empty()) dims.assign(parts[0].shape().dims().begin(), parts[0].shape().dims().end());
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].rank() == 0 || parts[0].rank() == 0 ||
        parts[i].shape().WithoutDim(0) != parts[0].shape().WithoutDim(0)) {
      return InvalidArgument("rows must have one shape, found values of shapes ", parts[0].shape(),
                             " and ", parts[i].shape());
    }
    TENON_ASSIGN_OR_RETURN(dims[0], AddSizes(dims[0], parts[i].dim(0)));
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(output, dims));
  int64_t at = 0;
  for (const Tensor& part : parts) {
    CopyElements(part, 0, out, at, part.num_elements());
    at += part.num_elements();
  }
  return OkStatus();
}

Status RaggedFromVariantKernel(KernelContext& ctx, const Tensor& in, int64_t input_rank, DType type,
                               DType split_type) {
  const int rank = ctx.num_outputs() - 1;
  if (input_rank == -1) input_rank = rank - in.rank();
  if (input_rank < 0 || input_rank != rank - in.rank()) {
    return InvalidArgument("output_ragged_rank ", rank, " must be input_ragged_rank ", input_rank,
                           " and the rank of encoded_ragged, ", in.rank());
  }
  TENON_ASSIGN_OR_RETURN(const auto parts, RaggedElements(in, input_rank, type, split_type));
  // The dimensions of the variant itself come first; the last one's rows are those of its elements.
  std::vector<IndexVector> splits;
  for (int d = 0; d < in.rank(); ++d) {
    IndexVector& ends = splits.emplace_back(1, 0);
    const int64_t count = Product(in.shape().dims(), 0, d + 1);
    for (int64_t i = 0; i < count; ++i) {
      int64_t rows = d + 1 < in.rank() ? in.dim(d + 1) : 0;
      if (d + 1 == in.rank()) {
        rows = input_rank > 0 ? parts[i]->splits()[0].dim(0) - 1 : parts[i]->values().dim(0);
      }
      ends.push_back(ends.back() + rows);
    }
  }
  for (int64_t d = 0; d < input_rank; ++d) {
    IndexVector& ends = splits.emplace_back(1, 0);
    for (const RaggedVariant* part : parts) {
      TENON_ASSIGN_OR_RETURN(const IndexVector level, ReadSplits(part->splits()[d]));
      const int64_t before = ends.back();
      for (size_t k = 1; k < level.size(); ++k) ends.push_back(before + level[k]);
    }
  }
  for (int d = 0; d < rank; ++d) TENON_RETURN_IF_ERROR(WriteSplits(ctx, d, splits[d]));
  CountedVector<Tensor> values;
  for (const RaggedVariant* part : parts) values.push_back(part->values());
  return ConcatValues(ctx, rank, values);
}

Status RaggedVariantGradKernel(KernelContext& ctx, const Tensor& in, const Tensor& splits,
                               const Shape& shape) {
  IndexVector ends = {0, shape.rank() > 0 ? shape.dim(0) : 1};
  if (splits.rank() > 0) {
    TENON_ASSIGN_OR_RETURN(ends, ReadSplits(splits));
  }
  if (static_cast<int64_t>(ends.size()) != in.num_elements() + 1 || shape.rank() == 0) {
    return InvalidArgument("row_splits of shape ", splits.shape(), " and values of shape ", shape,
                           " do not fit gradients of shape ", in.shape());
  }
  CountedVector<Tensor> values;
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    const VariantRef& value = in.data<Variant>()[i].value;
    const auto* const part = dynamic_cast<const RaggedVariant*>(value.get());
    if (part != nullptr) {
      values.push_back(part->values());
      continue;
    }
    if (value != nullptr) return InvalidArgument("an element of the gradient is no ragged tensor");
    // Nothing flowed to that row.
    TENON_ASSIGN_OR_RETURN(Tensor zeros, ctx.AllocateTemp(ctx.output_type(0),
                                                          shape.WithDim(0, ends[i + 1] - ends[i])));
    ZeroElements(&zeros);
    values.push_back(std::move(zeros));
  }
  for (const Tensor& t : values) {
    if (t.dtype() == ctx.output_type(0)) continue;
    return InvalidArgument("the gradient is ", t.dtype(), ", wanted ", ctx.output_type(0));
  }
  return ConcatValues(ctx, 0, values);
}

Status RaggedToVariantShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const bool batched, c.Attr<bool>("batched_input"));
  return c.Return(batched ? PartialShape{-1} : PartialShape(Shape()));
}

Status RaggedFromVariantShape(ShapeContext& c) {
  for (int i = 0; i + 1 < c.num_outputs(); ++i) c.set_output(i, {-1});
  return OkStatus();
}

Status RaggedVariantGradShape(ShapeContext& c) { return c.Return(c.ConstantShape(2)); }

void RaggedToVariantGrad(GradContext& g) {
  const int rank = g.num_inputs() - 1;
  const Output values = g.in(rank);
  g.dx(rank) =
      RaggedTensorToVariantGradient(g.dy(0), rank > 0 ? g.in(0) : Const(Tensor::Scalar<int64_t>(0)),
                                    ShapeVector(values), values.dtype());
}

void RaggedFromVariantGrad(GradContext& g) {
  const int rank = static_cast<int>(g.dys().size()) - 1;
  std::vector<Input> splits;
  for (int i = 0; i < rank; ++i) splits.emplace_back(g.out(i));
  const int of_variant = g.in(0).shape().rank();
  NodeBuilder builder("RaggedTensorToVariant");
  builder.Inputs(splits).Input(g.dy(rank));
  builder.Attr("Tsplits", g.Attr<DType>("Tsplits"));
  builder.Attr("batched_input", of_variant < 0 ? rank > 0 : of_variant > 0);
  g.dx(0) = builder.Output();
}

}  // namespace

void AddRaggedVariantDecoder() {
  AddVariantDecoder(RaggedVariant::kTypeName, RaggedVariant::Decode);
}

void RegisterRaggedVariantOps(OpRegistry& ops) {
  ops.Add("RaggedTensorToVariant", RaggedToVariantShape, RaggedToVariantKernel,
          {.attrs = {"batched_input"}})
      .Grad(RaggedToVariantGrad)
      .NoExample("makes variants; ragged_ops_test covers it");
  ops.Add("RaggedTensorFromVariant", RaggedFromVariantShape, RaggedFromVariantKernel,
          {.attrs = {"input_ragged_rank", "Tvalues", "Tsplits"}})
      .Grad(RaggedFromVariantGrad)
      .NoExample("takes variants; ragged_ops_test covers it");
  ops.Add("RaggedTensorToVariantGradient", RaggedVariantGradShape, RaggedVariantGradKernel)
      .NoExample("takes variants; ragged_ops_test covers it");
}

}  // namespace tenon
