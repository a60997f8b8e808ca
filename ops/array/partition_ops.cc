// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/array/partition.h"
#include "ops/composition.h"
#include "ops/elements.h"

namespace tenon {
namespace {

Status StitchKernel(KernelContext& ctx) {
  const int n = ctx.num_inputs() / 2;
  TENON_ASSIGN_OR_RETURN(const DimVector row_dims, StitchedRow(ctx, n));
  int64_t rows = 0;
  for (int i = 0; i < n; ++i) {
    for (const int32_t index : ctx.input(i).flat<int32_t>()) {
      if (index < 0) return NegativeStitchIndex(i, index);
      rows = std::max(rows, int64_t{index} + 1);
    }
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, Concat({rows}, row_dims)));
  // Rows that no index names are zero.
  ZeroElements(out);
  const int64_t row = Product(row_dims);
  for (int i = 0; i < n; ++i) {
    const absl::Span<const int32_t> indices = ctx.input(i).flat<int32_t>();
    for (size_t k = 0; k < indices.size(); ++k) {
      if (k % kStepsBetweenLooks == 0 && Interrupted()) break;
      CopyElements(ctx.input(n + i), static_cast<int64_t>(k) * row, out, indices[k] * row, row);
    }
  }
  return OkStatus();
}

Status StitchShape(ShapeContext& c) {
  const int n = c.num_inputs() / 2;
  PartialShape row;
  int64_t rows = 0;
  for (int i = 0; i < n; ++i) {
    const PartialShape &index = c.input(i), &data = c.input(n + i);
    if (index.rank_known() && data.rank_known()) {
      if (data.rank() < index.rank()) {
        return InvalidArgument("data ", i, " has shape ", data,
                               ", which does not start with that of its indices, ", index);
      }
      TENON_ASSIGN_OR_RETURN(row, row.MergeWith(data.Part(index.rank())));
    }
    const Tensor* constant = c.constant(i);
    if (constant == nullptr || constant->dtype() != DType::kInt32) rows = -1;
    if (rows < 0) continue;
    for (const int32_t v : constant->flat<int32_t>()) rows = std::max(rows, int64_t{v} + 1);
  }
  return c.Return(row.WithInsertedDim(0, rows));
}

void StitchGrad(GradContext& g) {
  const int n = g.num_inputs() / 2;
  for (int i = 0; i < n; ++i) g.dx(n + i) = Gather(g.dy(0), g.in(i));
}

Status PartitionKernel(KernelContext& ctx, const Tensor& data, const Tensor& partitions) {
  TENON_RETURN_IF_ERROR(CheckPrefix(data, "data", partitions, "partitions"));
  const absl::Span<const int32_t> part = partitions.flat<int32_t>();
  const int n = ctx.num_outputs();
  CountedVector<int64_t> counts(n, 0);
  for (size_t i = 0; i < part.size(); ++i) {
    if (part[i] < 0 || part[i] >= n) {
      return PartOutOfRange(partitions.shape(), static_cast<int64_t>(i), part[i], n);
    }
    ++counts[part[i]];
  }
  const auto row_dims = data.shape().dims().subspan(partitions.rank());
  const int64_t row = Product(row_dims);
  std::vector<Tensor*> outs(n);
  for (int i = 0; i < n; ++i) {
    TENON_ASSIGN_OR_RETURN(outs[i], ctx.CreateOutput(i, Concat({counts[i]}, row_dims)));
    counts[i] = 0;
  }
  for (size_t i = 0; i < part.size(); ++i) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
    const int64_t to = counts[part[i]]++ * row;
    CopyElements(data, static_cast<int64_t>(i) * row, outs[part[i]], to, row);
  }
  return OkStatus();
}

Status PartitionShape(ShapeContext& c) {
  const PartialShape &data = c.input(0), &partitions = c.input(1);
  if (!data.rank_known() || !partitions.rank_known()) return OkStatus();
  if (data.rank() < partitions.rank()) {
    return InvalidArgument("data ", data, " must start with the shape of partitions ", partitions);
  }
  const PartialShape row = data.Part(partitions.rank());
  return c.ReturnForEach(row.WithInsertedDim(0, PartialShape::kUnknownDim));
}

/// Puts the rows of every output's gradient back to where they came from: the same partition of
/// 0, 1, 2, ... says where that is.
void PartitionGrad(GradContext& g) {
  const Output partitions = g.in(1);
  const Output shape = ShapeOf(partitions);
  const Output places = Reshape(Range(0, Prod(shape, {0}), 1), shape);
  const std::vector<Output> grads = DysOrZeros(g);
  const std::vector<Output> indices = DynamicPartition(places, partitions, g.node().num_outputs());
  g.dx(0) = Reshape(DynamicStitch(indices, grads), ShapeOf(g.in(0)));
}

}  // namespace

StatusOr<DimVector> StitchedRow(const KernelContext& ctx, int n) {
  DimVector row;
  for (int i = 0; i < n; ++i) {
    const Tensor &index = ctx.input(i), &data = ctx.input(n + i);
    TENON_RETURN_IF_ERROR(
        CheckPrefix(data, StrCat("data[", i, "]"), index, StrCat("indices[", i, "]")));
    const auto rest = data.shape().dims().subspan(index.rank());
    if (i == 0) row.assign(rest.begin(), rest.end());
    if (absl::Span<const int64_t>(row) == rest) continue;
    return InvalidArgument("Need data[0].shape[", ctx.input(0).rank(), ":] = data[", i, "].shape[",
                           index.rank(), ":], got data[0].shape = ", ctx.input(n).shape(),
                           ", data[", i, "].shape = ", data.shape());
  }
  return row;
}

Status PartOutOfRange(const Shape& partitions, int64_t i, int64_t part, int64_t parts) {
  return NotInRange(part, parts, ElementName("partitions", partitions.dims(), i));
}

Status NegativeStitchIndex(int i, int64_t index) {
  return InvalidArgument("indices[", i, "] has a negative index: ", index, " is out of range");
}

void RegisterPartitionOps(OpRegistry& ops) {
  for (const char* name : {"DynamicStitch", "ParallelDynamicStitch"}) {
    ops.Add(name, StitchShape, StitchKernel)
        .Grad(StitchGrad)
        .Example({Tensor::Scalar(1), Tensor::Vector({2, 0}), Shape{3}, Shape{2, 3}}, {{"N", 2}});
  }
  ops.Add("DynamicPartition", PartitionShape, PartitionKernel)
      .Grad(PartitionGrad)
      .Example({Shape{4, 2}, Tensor::Vector({1, 0, 1, 1})}, {{"num_partitions", 2}});
}

}  // namespace tenon
