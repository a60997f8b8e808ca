// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/array/gather.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/math/operators.h"

namespace tenon {
namespace {

Status GatherKernel(KernelContext& ctx, const Tensor& params) {
  if (params.rank() < 1) return InvalidArgument("params must be at least 1 dimensional");
  return ctx.Return(GatherSlices(params, ctx.input(1), 0, 0));
}

Status GatherV2Kernel(KernelContext& ctx, int64_t batch_dims_attr) {
  const Tensor &params = ctx.input(0), &indices = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const int axis, ReadAxis(ctx.input(2), params.rank(), "axis"));
  TENON_ASSIGN_OR_RETURN(const int batch_dims, NormalizeBatchDims(batch_dims_attr, indices.rank()));
  return ctx.Return(GatherSlices(params, indices, axis, batch_dims));
}

Status CheckBatchDims(int batch_dims, int axis) {
  if (batch_dims <= axis) return OkStatus();
  return InvalidArgument("batch_dims = ", batch_dims, " must be at most axis = ", axis);
}

Status GatherShape(ShapeContext& c) {
  const PartialShape &params = c.input(0), &indices = c.input(1);
  if (!params.rank_known() || !indices.rank_known()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(
      const int batch_dims,
      NormalizeBatchDims(c.attrs().GetOr<int64_t>("batch_dims", 0), indices.rank()));
  std::optional<int> axis = 0;
  if (c.num_inputs() > 2) {
    TENON_ASSIGN_OR_RETURN(axis, ReadAxis(c, 2, params.rank(), "axis"));
  } else if (params.rank() < 1) {
    return InvalidArgument("params must be at least 1 dimensional");
  }
  if (!axis) {
    const int rank = params.rank() + indices.rank() - 1 - batch_dims;
    return rank > Shape::kMaxRank ? OkStatus() : c.Return(PartialShape::OfRank(rank));
  }
  TENON_RETURN_IF_ERROR(CheckBatchDims(batch_dims, *axis));
  const PartialShape outer = params.Part(0, axis), inner = params.Part(*axis + 1);
  return c.Return(outer.ConcatWith(indices.Part(batch_dims)).ConcatWith(inner));
}

/// The product of the dimensions [begin, end), to the last without `end`, of `shape`.
Output ProductOf(Output shape, int64_t begin, std::optional<int64_t> end = std::nullopt) {
  const int64_t end_mask = end ? 0 : 1;
  return Prod(StridedSlice(shape, {begin}, {end.value_or(0)}, {1}, {.end_mask = end_mask}), {0});
}

Status GatherGrad(GradContext& g) {
  const Output params = g.in(0);
  Output indices = g.in(1);
  if (indices.dtype() == DType::kInt16) indices = Cast(indices, DType::kInt32);
  int64_t axis = 0;
  if (g.num_inputs() > 2) {
    const Node& constant = *g.in(2).node;
    const Tensor value =
        constant.op() == "Const" ? constant.attrs().GetOr("value", Tensor()) : Tensor();
    if (!value.valid()) return Unimplemented("the axis must be a constant to be differentiated");
    TENON_ASSIGN_OR_RETURN(axis, ReadInteger(value, "axis"));
  }
  const Output shape = ShapeOf(params, {.out_type = indices.dtype()});
  const int64_t batch_dims = g.Attr<int64_t>("batch_dims");
  if (axis == 0 && batch_dims == 0) {
    g.dx_slices(0) = GatheredSlices(shape, indices, g.dy(0));
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(g.dx(0), GatherGradient(shape, indices, g.dy(0), axis, batch_dims));
  return OkStatus();
}

}  // namespace

StatusOr<int> NormalizeBatchDims(int64_t batch_dims, int indices_rank) {
  if (batch_dims < -indices_rank || batch_dims > indices_rank) {
    return InvalidArgument("Expected batch_dims in the range [", -indices_rank, ", ", indices_rank,
                           "], but got ", batch_dims);
  }
  return static_cast<int>(batch_dims < 0 ? batch_dims + indices_rank : batch_dims);
}

Status CheckGatherAxis(const Shape& params, int axis) {
  if (axis < params.rank()) return OkStatus();
  return InvalidArgument("params must be at least rank ", axis + 1, ", found shape ", params);
}

IndexedSlices GatheredSlices(const Output& shape, Output indices, Output dy) {
  if (!indices.shape().rank_known() || indices.shape().rank() != 1) {
    const Output row = StridedSlice(shape, {1}, {0}, {1}, {.end_mask = 1});
    const Output count = Const({-1}, {.dtype = row.dtype()});
    dy = Reshape(dy, ConcatV2({count, row}, 0));
    indices = Reshape(indices, {-1});
  }
  return {dy, indices, shape};
}

/// Seen as [batch, outer, limit, inner], so that ranks need not be known; the rows of all batches
/// become one list of segments.
StatusOr<Output> GatherGradient(Output shape, Output indices, Output dy, int64_t axis,
                                int64_t batch_dims) {
  const auto scalar = [&](int32_t v) { return Const(v, {.dtype = indices.dtype()}); };
  if (batch_dims < 0) {
    if (!indices.shape().rank_known()) {
      return Unimplemented("negative batch_dims with indices of unknown rank");
    }
    TENON_ASSIGN_OR_RETURN(batch_dims, NormalizeBatchDims(batch_dims, indices.shape().rank()));
  }
  if (batch_dims > Shape::kMaxRank || axis < -Shape::kMaxRank || axis > Shape::kMaxRank) {
    return InvalidArgument("batch_dims = ", batch_dims, " and axis = ", axis,
                           " are not dimensions of a tensor");
  }
  const int32_t a = static_cast<int32_t>(axis);
  const Output size =
      Reshape(StridedSlice(shape, {a}, {a + 1}, {1}, {.end_mask = a == -1 ? 1 : 0}), {});
  const Output batch = ProductOf(shape, 0, batch_dims);
  const Output outer = ProductOf(shape, batch_dims, axis);
  const Output inner = axis == -1 ? scalar(1) : ProductOf(shape, axis + 1);
  const Output count = ProductOf(ShapeOf(indices, {.out_type = indices.dtype()}), batch_dims);
  const Output swap = Const({0, 2, 1, 3});
  const Output rows = Reshape(Transpose(Reshape(dy, Pack({batch, outer, count, inner})), swap),
                              Pack({batch * count, outer, inner}));
  const Output first = ExpandDims(Range(scalar(0), batch, scalar(1)) * size, -1);
  const Output ids = Reshape(indices, Pack({batch, count})) + first;
  const Output sums = UnsortedSegmentSum(rows, Reshape(ids, Pack({batch * count})), batch * size);
  return Reshape(Transpose(Reshape(sums, Pack({batch, size, outer, inner})), swap), shape);
}

StatusOr<GatherPlan> PlanGather(const Shape& params, const Shape& indices, int axis,
                                int batch_dims) {
  TENON_RETURN_IF_ERROR(CheckBatchDims(batch_dims, axis));
  const absl::Span<const int64_t> p = params.dims(), q = indices.dims();
  for (int i = 0; i < batch_dims; ++i) {
    if (p[i] == q[i]) continue;
    return InvalidArgument("params.shape[", i, "] = ", p[i], " is not indices.shape[", i,
                           "] = ", q[i]);
  }
  GatherPlan plan;
  TENON_ASSIGN_OR_RETURN(
      plan.shape,
      Shape::Create(Concat(Concat(p.first(axis), q.subspan(batch_dims)), p.subspan(axis + 1))));
  if (plan.shape.num_elements() == 0) return plan;
  plan.limit = p[axis];
  plan.outer = Product(p, batch_dims, axis);
  plan.inner = Product(p, axis + 1, params.rank());
  plan.count = Product(q, batch_dims, indices.rank());
  return plan;
}

StatusOr<Tensor> GatherSlices(const Tensor& params, const Tensor& indices, int axis,
                              int batch_dims) {
  TENON_ASSIGN_OR_RETURN(const GatherPlan plan,
                         PlanGather(params.shape(), indices.shape(), axis, batch_dims));
  TENON_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(CpuAllocator(), params.dtype(), plan.shape));
  // Where nothing is gathered, indices are not looked at, as in TensorFlow.
  if (out.num_elements() == 0) return out;
  TENON_ASSIGN_OR_RETURN(const IndexVector rows, ReadIndices(indices, "indices", plan.limit));
  const int64_t inner = plan.inner, count = plan.count;
  const double cost_ns = 2 + 0.1 * static_cast<double>(inner * StrideOf(params.dtype()));
  const int64_t runs = out.num_elements() / inner;
  const auto from = [&](int64_t i) {
    const int64_t place = i / count;
    return (place * plan.limit + rows[place / plan.outer * count + i % count]) * inner;
  };
  ParallelFor(runs, cost_ns, [&](int64_t begin, int64_t end) {
    if (inner > kLongCopy) {  // of which each can be interrupted
      for (int64_t i = begin; i < end; ++i) CopyElements(params, from(i), &out, i * inner, inner);
    } else if (runs == count) {  // without divisions
      CopyRuns(
          params, [&](int64_t i) { return rows[i] * inner; }, inner, begin, end, &out);
    } else {
      CopyRuns(params, from, inner, begin, end, &out);
    }
  });
  return out;
}

void RegisterGatherOps(OpRegistry& ops) {
  ops.Add("Gather", GatherShape, GatherKernel)
      .Grad(GatherGrad)
      .Example({Shape{4, 3}, Tensor::Of({2, 2}, {3, 0, 1, 1})});
  ops.Add("GatherV2", GatherShape, GatherV2Kernel, {.attrs = {"batch_dims"}})
      .Grad(GatherGrad)
      .Example({Shape{2, 4, 3}, Tensor::Vector({3, 0, 3}), Tensor::Scalar(1)})
      .Example({Shape{2, 3}, Tensor::Vector<int64_t>({1, 1, 0}), Tensor::Scalar(0)})
      .Example({Shape{2, 2, 3}, Tensor::Of({2, 2}, {2, 0, 1, 1}), Tensor::Scalar(-1)},
               {{"batch_dims", 1}});
}

}  // namespace tenon
