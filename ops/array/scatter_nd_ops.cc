// SPDX-License-Identifier: Apache-2.0
#include "core/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/combine_rows.h"
#include "ops/composition.h"
#include "ops/elements.h"

namespace tenon {
namespace {

/// Index tuples: which row each of them names in a tensor seen as rows of `width` elements. Tuples
/// of length 0, of which there may be any number, all name row 0.
struct Tuples {
  int64_t count = 0;
  int64_t width = 1;
  IndexVector rows;  // empty for tuples of length 0
};

/// Reads `indices`, whose last dimension is a tuple into the leading dimensions of `shape`.
StatusOr<Tuples> ReadTuples(const Tensor& indices, const Shape& shape, std::string_view what) {
  if (indices.rank() < 1) return InvalidArgument("indices must be at least a vector");
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth > shape.rank()) {
    return InvalidArgument("index innermost dimension length must be <= ", what,
                           " rank; saw: ", depth, " vs. ", shape.rank());
  }
  Tuples tuples;
  const int k = static_cast<int>(depth);
  tuples.width = Product(shape.dims(), k, shape.rank());
  tuples.count = Product(indices.shape().dims(), 0, indices.rank() - 1);
  if (k == 0) return tuples;
  TENON_ASSIGN_OR_RETURN(const IndexVector flat, ReadIndices(indices, "indices"));
  const DimVector strides = StridesOf(shape.dims().first(k));
  tuples.rows.assign(tuples.count, 0);
  for (int64_t i = 0; i < tuples.count; ++i) {
    const auto tuple = absl::MakeSpan(flat).subspan(i * k, k);
    for (int d = 0; d < k; ++d) {
      if (tuple[d] < 0 || tuple[d] >= shape.dim(d)) {
        return InvalidArgument("indices[", i, "] = [", Join(tuple, ", "), "] does not index into ",
                               what, " shape ", shape);
      }
      tuples.rows[i] += tuple[d] * strides[d];
    }
  }
  return tuples;
}

/// The shape of what the tuples stand for: indices[:-1] + shape[k:].
DimVector SlicesShape(absl::Span<const int64_t> indices, absl::Span<const int64_t> shape) {
  return Concat(indices.first(indices.size() - 1), shape.subspan(indices.back()));
}

Status GatherNdKernel(KernelContext& ctx) {
  const Tensor& params = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  if (params.rank() < 1) return InvalidArgument("params must be at least a vector");
  if (params.num_elements() == 0 && indices.rank() > 0 &&
      Product(indices.shape().dims(), 0, indices.rank() - 1) > 0) {
    return InvalidArgument("Requested more than 0 entries, but params is empty. Params shape: ",
                           params.shape());
  }
  TENON_ASSIGN_OR_RETURN(const Tuples tuples, ReadTuples(indices, params.shape(), "param"));
  const DimVector dims = SlicesShape(indices.shape().dims(), params.shape().dims());
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, dims));
  if (out->num_elements() == 0) return OkStatus();
  for (int64_t i = 0; i < tuples.count; ++i) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
    const int64_t row = tuples.rows.empty() ? 0 : tuples.rows[i];
    CopyElements(params, row * tuples.width, out, i * tuples.width, tuples.width);
  }
  return OkStatus();
}

Status GatherNdShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape params, c.WithRankAtLeast(0, 1));
  TENON_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRankAtLeast(1, 1));
  if (!params.rank_known() || !indices.rank_known()) return OkStatus();
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth < 0) return OkStatus();
  if (depth > params.rank()) {
    return InvalidArgument("index innermost dimension length must be <= param rank; saw: ", depth,
                           " vs. ", params.rank());
  }
  return c.Return(PartialShape(SlicesShape(indices.dims(), params.dims())));
}

void GatherNdGrad(GradContext& g) {
  Output indices = g.in(1);
  if (indices.dtype() == DType::kInt16) indices = Cast(indices, DType::kInt32);
  g.dx(0) = ScatterNd(indices, g.dy(0), ShapeOf(g.in(0), {.out_type = indices.dtype()}));
}

/// Types that ScatterNd can add; a bool is set when any update is.
using ScatterTypes = decltype(ConcatTypes(NumericTypes(), TypeList<bool>()));

Status ScatterNdKernel(KernelContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& updates = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(2), "shape"));
  TENON_ASSIGN_OR_RETURN(Tuples tuples, ReadTuples(indices, shape, "output"));
  const DimVector wanted = SlicesShape(indices.shape().dims(), shape.dims());
  if (updates.shape().dims() != wanted) {
    return InvalidArgument("updates must have shape ", PartialShape(wanted), ", found ",
                           updates.shape());
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  ZeroElements(out);
  if (updates.num_elements() == 0) return OkStatus();
  if (tuples.rows.empty()) tuples.rows.assign(tuples.count, 0);
  return CombineRows(Update::kAdd, updates, tuples.rows, tuples.width, out);
}

}  // namespace

void RegisterScatterNdOps(OpRegistry& ops) {
  ops.Add("GatherNd", GatherNdShape, GatherNdKernel)
      .Grad(GatherNdGrad)
      .Example({Shape{3, 4}, Tensor::Of<int32_t>({3, 1}, {2, 0, 2})})
      .Example({Shape{3, 4}, Tensor::Of<int64_t>({2, 2}, {2, 0, 1, 3})});
  ops.Add("ScatterNd", [](ShapeContext& c) { return c.Return(c.ConstantShape(2)); },
          ScatterNdKernel, {.types = {{"T", DTypesOf(ScatterTypes())}}})
      .Grad([](GradContext& g) { g.dx(1) = GatherNd(g.dy(0), g.in(0)); })
      .Example(
          {Tensor::Of<int32_t>({3, 1}, {2, 0, 2}), Shape{3, 2}, Tensor::Vector<int32_t>({4, 2})});
}

}  // namespace tenon
