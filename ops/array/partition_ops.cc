// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/array/register.h"

namespace tenon {
namespace {

/// Checks that data[i] begins with the shape of its indices and that all agree on the rest, which
/// is returned.
StatusOr<DimVector> StitchedRow(const KernelContext& ctx, int n) {
  DimVector row;
  for (int i = 0; i < n; ++i) {
    const Shape &index = ctx.input(i).shape(), &data = ctx.input(n + i).shape();
    if (data.rank() < index.rank() || !(data.dims().first(index.rank()) == index.dims())) {
      return InvalidArgument("data[", i, "].shape = ", data.ToString(),
                             " does not start with indices[", i, "].shape = ", index.ToString());
    }
    const auto rest = data.dims().subspan(index.rank());
    if (i == 0) row.assign(rest.begin(), rest.end());
    if (absl::Span<const int64_t>(row) == rest) continue;
    return InvalidArgument("Need data[0].shape[", ctx.input(0).rank(), ":] = data[", i, "].shape[",
                           index.rank(),
                           ":], got data[0].shape = ", ctx.input(n).shape().ToString(), ", data[",
                           i, "].shape = ", data.ToString());
  }
  return row;
}

Status StitchKernel(KernelContext& ctx) {
  const int n = ctx.num_inputs() / 2;
  TENON_ASSIGN_OR_RETURN(DimVector dims, StitchedRow(ctx, n));
  int64_t rows = 0;
  for (int i = 0; i < n; ++i) {
    for (const int32_t index : ctx.input(i).flat<int32_t>()) {
      if (index < 0) return InvalidArgument("indices[", i, "] has a negative index: ", index);
      rows = std::max<int64_t>(rows, int64_t{index} + 1);
    }
  }
  dims.insert(dims.begin(), rows);
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  // Rows that no index names are zero.
  ZeroElements(out);
  const int64_t row = Product(dims, 1, shape.rank());
  for (int i = 0; i < n; ++i) {
    const absl::Span<const int32_t> indices = ctx.input(i).flat<int32_t>();
    for (size_t k = 0; k < indices.size(); ++k) {
      if (k % kStepsBetweenLooks == 0 && Interrupted()) break;
      CopyElements(out->dtype(), ElementAt(ctx.input(n + i), static_cast<int64_t>(k) * row),
                   ElementAt(*out, indices[k] * row), row);
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
        return InvalidArgument("data ", i, " has shape ", data.ToString(),
                               ", which does not start with that of its indices, ",
                               index.ToString());
      }
      TENON_ASSIGN_OR_RETURN(row, row.MergeWith(PartialShape(data.dims().subspan(index.rank()))));
    }
    const Tensor* constant = c.constant(i);
    if (constant == nullptr || constant->dtype() != DType::kInt32) rows = -1;
    if (rows < 0) continue;
    for (const int32_t v : constant->flat<int32_t>())
      rows = std::max<int64_t>(rows, int64_t{v} + 1);
  }
  if (!row.rank_known()) return OkStatus();
  DimVector dims(row.dims().begin(), row.dims().end());
  dims.insert(dims.begin(), rows);
  TENON_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Create(dims));
  c.set_output(0, std::move(out));
  return OkStatus();
}

void StitchGrad(GradContext& g) {
  const int n = g.num_inputs() / 2;
  for (int i = 0; i < n; ++i) g.dx(n + i) = Gather(g.dy(0), g.in(i));
}

Status PartitionKernel(KernelContext& ctx) {
  const Tensor& data = ctx.input(0);
  const Tensor& partitions = ctx.input(1);
  const int rank = partitions.rank();
  if (data.rank() < rank || !(data.shape().dims().first(rank) == partitions.shape().dims())) {
    return InvalidArgument(
        "data.shape must start with partitions.shape, got data.shape = ", data.shape().ToString(),
        ", partitions.shape = ", partitions.shape().ToString());
  }
  const absl::Span<const int32_t> part = partitions.flat<int32_t>();
  std::vector<int64_t> counts(ctx.num_outputs(), 0);
  for (size_t i = 0; i < part.size(); ++i) {
    if (part[i] < 0 || part[i] >= ctx.num_outputs()) {
      return InvalidArgument("partitions[", i, "] = ", part[i], " is not in [0, ",
                             ctx.num_outputs(), ")");
    }
    ++counts[part[i]];
  }
  DimVector dims(data.shape().dims().begin() + rank, data.shape().dims().end());
  const int64_t row = Product(dims, 0, static_cast<int>(dims.size()));
  dims.insert(dims.begin(), 0);
  std::vector<Tensor*> outs(ctx.num_outputs());
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    dims[0] = counts[i];
    TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    TENON_ASSIGN_OR_RETURN(outs[i], ctx.AllocateOutput(i, shape));
    counts[i] = 0;
  }
  for (size_t i = 0; i < part.size(); ++i) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
    CopyElements(data.dtype(), ElementAt(data, static_cast<int64_t>(i) * row),
                 ElementAt(*outs[part[i]], counts[part[i]]++ * row), row);
  }
  return OkStatus();
}

Status PartitionShape(ShapeContext& c) {
  const PartialShape &data = c.input(0), &partitions = c.input(1);
  if (!data.rank_known() || !partitions.rank_known()) return OkStatus();
  if (data.rank() < partitions.rank()) {
    return InvalidArgument("data ", data.ToString(), " must start with the shape of partitions ",
                           partitions.ToString());
  }
  DimVector dims(data.dims().begin() + partitions.rank(), data.dims().end());
  dims.insert(dims.begin(), PartialShape::kUnknownDim);
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape(dims));
  return OkStatus();
}

/// Puts the rows of every output's gradient back to where they came from: the same partition of
/// 0, 1, 2, ... says where that is.
void PartitionGrad(GradContext& g) {
  const Output data = g.in(0), partitions = g.in(1);
  const Output shape = ShapeOf(partitions);
  const Output count = Prod(shape, {0});
  const Output places = Reshape(Range(0, count, 1), shape);
  const std::vector<Output> grads = DysOrZeros(g);
  const std::vector<Output> indices = DynamicPartition(places, partitions, g.node().num_outputs());
  g.dx(0) = Reshape(DynamicStitch(indices, grads), ShapeOf(data));
}

}  // namespace

void RegisterPartitionOps(OpRegistry& ops) {
  ops.Get("DynamicStitch")
      .Shape(StitchShape)
      .Kernel(kCpu, StitchKernel)
      .Grad(StitchGrad)
      .Example({Tensor::Scalar<int32_t>(1), Tensor::Vector<int32_t>({2, 0}), Shape{3}, Shape{2, 3}},
               {{"N", 2}});
  ops.Get("DynamicPartition")
      .Shape(PartitionShape)
      .Kernel(kCpu, PartitionKernel)
      .Grad(PartitionGrad)
      .Example({Shape{4, 2}, Tensor::Vector<int32_t>({1, 0, 1, 1})}, {{"num_partitions", 2}});
}

}  // namespace tenon
