// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/array/gather.h"
#include "ops/array/index_tuples.h"
#include "ops/combine_rows.h"
#include "ops/composition.h"
#include "ops/elements.h"

namespace tenon {
namespace {

Status GatherNdKernel(KernelContext& ctx) {
  return ctx.Return(GatherTuples(ctx.input(0), ctx.input(1)));
}

Status GatherNdShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape params, c.WithRankAtLeast(0, 1));
  TENON_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRankAtLeast(1, 1));
  return c.Return(GatherTuplesShape(params, indices));
}

void GatherNdGrad(GradContext& g) {
  Output indices = g.in(1);
  if (indices.dtype() == DType::kInt16) indices = Cast(indices, DType::kInt32);
  g.dx(0) = ScatterNd(indices, g.dy(0), ShapeOf(g.in(0), {.out_type = indices.dtype()}));
}

/// Types that ScatterNd can add; a bool is set when any update is.
using ScatterTypes = decltype(ConcatTypes(NumericTypes(), TypeList<bool>()));

/// Texts of one place are joined.
using ScatterNdTypes = decltype(ConcatTypes(ScatterTypes(), TypeList<TString>()));

Status ScatterNdKernel(KernelContext& ctx, const Tensor& indices, const Tensor& updates,
                       const Shape& shape) {
  TENON_ASSIGN_OR_RETURN(const IndexTuples tuples,
                         ReadUpdateTuples(indices, updates.shape(), shape));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  ZeroElements(out);
  if (updates.num_elements() == 0) return OkStatus();
  return CombineRows(Update::kAdd, updates, tuples.rows, tuples.width, out);
}

template <Update kUpdate>
Status TensorScatterKernel(KernelContext& ctx) {
  const Tensor in = ctx.input(0);
  const Tensor &indices = ctx.input(1), &updates = ctx.input(2);
  TENON_RETURN_IF_ERROR(CheckTensorScatter(in.shape(), indices.shape(), updates.shape()));
  TENON_ASSIGN_OR_RETURN(const IndexTuples tuples,
                         ReadUpdateTuples(indices, updates.shape(), in.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  CopyElements(in, 0, out, 0, in.num_elements());
  if (updates.num_elements() == 0) return OkStatus();
  return CombineRows(kUpdate, updates, tuples.rows, tuples.width, out);
}

Status TensorScatterShape(ShapeContext& c) { return c.Return(c.WithRankAtLeast(0, 1)); }

/// The slices of `x` that the node's indices name.
Output SlicesOf(const GradContext& g, const Output& x) { return GatherNd(x, g.in(1)); }

/// Where several were the least (or the largest), each gets an equal part.
void TensorScatterExtremeGrad(GradContext& g) {
  const Output x = g.in(0), indices = g.in(1), y = g.out(0), dy = g.dy(0);
  const Output tensor_won = Cast(Equal(x, y), dy.dtype());
  const Output updates_won = Cast(Equal(g.in(2), SlicesOf(g, y)), dy.dtype());
  const Output winners =
      tensor_won + ScatterNd(indices, updates_won, ShapeOf(x, {.out_type = indices.dtype()}));
  const Output part = dy / winners;
  g.dx(0) = part * tensor_won;
  g.dx(2) = SlicesOf(g, part) * updates_won;
}

}  // namespace

Status CheckGatheredParams(const Shape& params, const Shape& indices) {
  if (params.rank() < 1) return InvalidArgument("params must be at least a vector");
  if (params.num_elements() == 0 && indices.rank() > 0 &&
      Product(indices.dims(), 0, indices.rank() - 1) > 0) {
    return InvalidArgument("Requested more than 0 entries, but params is empty. Params shape: ",
                           params);
  }
  return OkStatus();
}

StatusOr<Tensor> GatherTuples(const Tensor& params, const Tensor& indices) {
  TENON_RETURN_IF_ERROR(CheckGatheredParams(params.shape(), indices.shape()));
  TENON_ASSIGN_OR_RETURN(const IndexTuples tuples,
                         ReadTuples(indices, params.shape(), "param shape"));
  const DimVector dims = SlicesShape(indices.shape().dims(), params.shape().dims());
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TENON_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(CpuAllocator(), params.dtype(), shape));
  if (out.num_elements() == 0) return out;
  const int64_t width = tuples.width;
  const double cost_ns = 2 + 0.1 * static_cast<double>(width * StrideOf(params.dtype()));
  const auto from = [&](int64_t i) { return tuples.rows.empty() ? 0 : tuples.rows[i] * width; };
  ParallelFor(tuples.count, cost_ns, [&](int64_t begin, int64_t end) {
    if (width <= kLongCopy) return CopyRuns(params, from, width, begin, end, &out);
    for (int64_t i = begin; i < end; ++i) CopyElements(params, from(i), &out, i * width, width);
  });
  return out;
}

StatusOr<PartialShape> GatherTuplesShape(const PartialShape& params, const PartialShape& indices) {
  if (!params.rank_known() || indices.rank() < 1) return PartialShape();
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth < 0) return PartialShape();
  if (depth > params.rank()) {
    return InvalidArgument("index innermost dimension length must be <= params rank; saw: ", depth,
                           " vs. ", params.rank());
  }
  return PartialShape(SlicesShape(indices.dims(), params.dims()));
}

void RegisterScatterNdOps(OpRegistry& ops) {
  ops.Add("GatherNd", GatherNdShape, GatherNdKernel)
      .Grad(GatherNdGrad)
      .Example({Shape{3, 4}, Tensor::Of<int32_t>({3, 1}, {2, 0, 2})})
      .Example({Shape{3, 4}, Tensor::Of<int64_t>({2, 2}, {2, 0, 1, 3})});
  ops.Add("ScatterNd", [](ShapeContext& c) { return c.Return(c.ConstantShape(2)); },
          ScatterNdKernel, {.types = {{"T", DTypesOf(ScatterNdTypes())}}})
      .Grad([](GradContext& g) { g.dx(1) = GatherNd(g.dy(0), g.in(0)); })
      .Example(
          {Tensor::Of<int32_t>({3, 1}, {2, 0, 2}), Shape{3, 2}, Tensor::Vector<int32_t>({4, 2})});
  const Tensor indices = Tensor::Of<int32_t>({3, 1}, {2, 0, 3});
  const auto scatter = [&](std::string_view name, Status (*kernel)(KernelContext&),
                           DTypeVector types) {
    return ops.Add(name, TensorScatterShape, kernel, {.types = {{"T", std::move(types)}}})
        .Example({Shape{4, 2}, indices, Shape{3, 2}});
  };
  using ScalarTypes = decltype(ConcatTypes(PlainTypes(), TypeList<TString>()));
  scatter("TensorScatterUpdate", TensorScatterKernel<Update::kAssign>, DTypesOf(ScalarTypes()))
      .Grad([](GradContext& g) {
        g.dx(0) = TensorScatterUpdate(g.dy(0), g.in(1), ZerosLike(g.in(2)));
        g.dx(2) = SlicesOf(g, g.dy(0));
      });
  const auto add_grad = [](GradContext& g) {
    g.dx(0) = g.dy(0);
    g.dx(2) = SlicesOf(g, g.dy(0));
  };
  scatter("TensorScatterAdd", TensorScatterKernel<Update::kAdd>, DTypesOf(NumericTypes()))
      .Grad(add_grad);
  scatter("ScatterNdNonAliasingAdd", TensorScatterKernel<Update::kAdd>, DTypesOf(ScatterTypes()))
      .Grad(add_grad);
  scatter("TensorScatterSub", TensorScatterKernel<Update::kSubtract>, DTypesOf(NumericTypes()))
      .Grad([](GradContext& g) {
        g.dx(0) = g.dy(0);
        g.dx(2) = -SlicesOf(g, g.dy(0));
      });
  scatter("TensorScatterMin", TensorScatterKernel<Update::kMin>, DTypesOf(RealTypes()))
      .Grad(TensorScatterExtremeGrad);
  scatter("TensorScatterMax", TensorScatterKernel<Update::kMax>, DTypesOf(RealTypes()))
      .Grad(TensorScatterExtremeGrad);
}

}  // namespace tenon
