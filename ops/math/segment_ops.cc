// SPDX-License-Identifier: Apache-2.0
#include "core/op_registry.h"
#include "ops/arguments.h"
#include "ops/combine_rows.h"
#include "ops/composition.h"
#include "ops/elements.h"

namespace tenon {
namespace {

/// Sums the rows of input 0 by their ids, in order; negative ids drop theirs. The ids, of `id_rank`
/// dimensions, are below `segments`.
Status SumSegments(KernelContext& ctx, const IndexVector& ids, int id_rank, int64_t segments) {
  const Tensor& data = ctx.input(0);
  const auto row = data.shape().dims().subspan(id_rank);
  TENON_ASSIGN_OR_RETURN(Tensor * sums, ctx.CreateOutput(0, Concat({segments}, row)));
  ZeroElements(sums);
  return CombineRows(Update::kAdd, data, ids, Product(row), sums);
}

Status SegmentSumKernel(KernelContext& ctx) {
  const Tensor &data = ctx.input(0), &segment_ids = ctx.input(1);
  TENON_RETURN_IF_ERROR(CheckRank(segment_ids, 1, "segment_ids"));
  TENON_RETURN_IF_ERROR(CheckPrefix(data, "data", segment_ids, "segment_ids"));
  TENON_ASSIGN_OR_RETURN(const IndexVector ids, ReadIndices(segment_ids, "segment_ids"));
  int64_t last = -1;
  for (const int64_t id : ids) {
    if (id < 0) return InvalidArgument("segment ids must be >= 0");
    if (id < last) return InvalidArgument("segment ids are not increasing");
    last = id;
  }
  if (last == INT64_MAX) return InvalidArgument("segment id ", last, " is too large");
  return SumSegments(ctx, ids, 1, last + 1);
}

Status UnsortedSegmentSumKernel(KernelContext& ctx) {
  const Tensor &data = ctx.input(0), &segment_ids = ctx.input(1);
  TENON_RETURN_IF_ERROR(CheckPrefix(data, "data", segment_ids, "segment_ids"));
  TENON_ASSIGN_OR_RETURN(const int64_t segments, ReadInteger(ctx.input(2), "num_segments"));
  if (segments < 0) return InvalidArgument("num_segments = ", segments, " must not be negative");
  TENON_ASSIGN_OR_RETURN(const IndexVector ids, ReadIndices(segment_ids, "segment_ids"));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < segments) continue;
    return InvalidArgument("segment_ids[", i, "] = ", ids[i], " is out of range [0, ", segments,
                           ")");
  }
  return SumSegments(ctx, ids, segment_ids.rank(), segments);
}

Status SegmentSumShape(ShapeContext& c) {
  TENON_RETURN_IF_ERROR(c.WithRankAtLeast(0, 1));
  TENON_RETURN_IF_ERROR(c.WithRank(1, 1));
  return c.Return(c.input(0).WithDim(0, PartialShape::kUnknownDim));
}

Status UnsortedSegmentSumShape(ShapeContext& c) {
  const PartialShape &data = c.input(0), &ids = c.input(1);
  if (!data.rank_known() || !ids.rank_known() || ids.rank() > data.rank()) return OkStatus();
  return c.Return(PartialShape{PartialShape::kUnknownDim}.ConcatWith(data.Part(ids.rank())));
}

/// Rows whose id is negative were dropped, so their gradient is 0.
void UnsortedSegmentSumGrad(GradContext& g) {
  const Output data = g.in(0), ids = g.in(1);
  const Output zero = ZerosLike(ids);
  const Output gathered = GatherV2(g.dy(0), Maximum(ids, zero), 0);
  // The mask [ids...] gets ones behind it until it has the rank of the rows.
  const Output id_shape = ShapeOf(ids);
  const Output id_rank = Size(id_shape);
  const Output trailing = Slice(OnesLike(ShapeOf(data)), Reshape(id_rank, {1}), {-1});
  const Output mask_shape = ConcatV2({id_shape, trailing}, 0);
  const Output kept = Reshape(ids >= zero, mask_shape);
  g.dx(0) = SelectV2(kept, gathered, ZerosLike(gathered));
}

}  // namespace

void RegisterSegmentOps(OpRegistry& ops) {
  const KernelOptions numeric = {.types = {{"T", DTypesOf(NumericTypes())}}};
  ops.Add("SegmentSum", SegmentSumShape, SegmentSumKernel, numeric)
      .Grad([](GradContext& g) { g.dx(0) = GatherV2(g.dy(0), g.in(1), 0); })
      .Example({Shape{4, 2}, Tensor::Vector<int32_t>({0, 0, 1, 3})});
  ops.Add("UnsortedSegmentSum", UnsortedSegmentSumShape, UnsortedSegmentSumKernel, numeric)
      .Grad(UnsortedSegmentSumGrad)
      .Example({Shape{4, 2}, Tensor::Vector<int32_t>({2, 0, -1, 2}), Tensor::Scalar<int32_t>(3)})
      .Example(
          {Shape{2, 2, 3}, Tensor::Of<int64_t>({2, 2}, {0, 1, 1, 0}), Tensor::Scalar<int32_t>(2)});
}

}  // namespace tenon
