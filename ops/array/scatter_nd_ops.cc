// SPDX-License-Identifier: Apache-2.0
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/state/state_ops.h"
#include "ops/elements.h"
#include "ops/maths.h"
#include "ops/array/register.h"

namespace tenon {
namespace {

/// Index tuples: where each of them points, in elements, and how many elements it stands for.
/// Tuples of length 0, of which there may be any number, all point to the beginning.
struct Tuples {
  int64_t count = 0;
  int64_t slice = 1;
  IndexVector offsets;  // empty for tuples of length 0

  int64_t offset(int64_t i) const { return offsets.empty() ? 0 : offsets[i]; }
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
  tuples.slice = Product(shape.dims(), k, shape.rank());
  const DimVector strides = StridesOf(shape.dims());
  TENON_ASSIGN_OR_RETURN(const IndexVector flat, ReadIndices(indices, "indices"));
  tuples.count = Product(indices.shape().dims(), 0, indices.rank() - 1);
  if (k == 0) return tuples;
  tuples.offsets.assign(tuples.count, 0);
  for (int64_t i = 0; i < tuples.count; ++i) {
    for (int d = 0; d < k; ++d) {
      const int64_t at = flat[i * k + d];
      if (at < 0 || at >= shape.dim(d)) {
        return InvalidArgument(
            "indices[", i, "] = [",
            Join(absl::Span<const int64_t>(flat.data() + i * k, static_cast<size_t>(k)), ", "),
            "] does not index into ", what, " shape ", shape.ToString());
      }
      tuples.offsets[i] += at * strides[d];
    }
  }
  return tuples;
}

DimVector JoinedDims(absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
  DimVector dims(a.begin(), a.end());
  dims.insert(dims.end(), b.begin(), b.end());
  return dims;
}

/// The shape of what the tuples stand for: indices[:-1] + shape[k:].
DimVector SlicesShape(absl::Span<const int64_t> indices, absl::Span<const int64_t> shape) {
  const int64_t depth = indices.back();
  return JoinedDims(indices.first(indices.size() - 1), shape.subspan(depth));
}

Status GatherNdKernel(KernelContext& ctx) {
  const Tensor& params = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  if (params.rank() < 1) return InvalidArgument("params must be at least a vector");
  if (params.num_elements() == 0 && indices.rank() > 0 &&
      Product(indices.shape().dims(), 0, indices.rank() - 1) > 0) {
    return InvalidArgument("Requested more than 0 entries, but params is empty. Params shape: ",
                           params.shape().ToString());
  }
  TENON_ASSIGN_OR_RETURN(const Tuples tuples, ReadTuples(indices, params.shape(), "param"));
  TENON_ASSIGN_OR_RETURN(const Shape shape,
                         Shape::Create(SlicesShape(indices.shape().dims(), params.shape().dims())));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return OkStatus();
  for (int64_t i = 0; i < tuples.count; ++i) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
    CopyElements(params.dtype(), ElementAt(params, tuples.offset(i)),
                 ElementAt(*out, i * tuples.slice), tuples.slice);
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
  TENON_ASSIGN_OR_RETURN(PartialShape out,
                         PartialShape::Create(SlicesShape(indices.dims(), params.dims())));
  c.set_output(0, std::move(out));
  return OkStatus();
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
  TENON_ASSIGN_OR_RETURN(const Tuples tuples, ReadTuples(indices, shape, "output"));
  const DimVector wanted = SlicesShape(indices.shape().dims(), shape.dims());
  if (!(updates.shape().dims() == absl::Span<const int64_t>(wanted))) {
    return InvalidArgument("updates must have shape ", PartialShape(wanted).ToString(),
                           " for indices of shape ", indices.shape().ToString(),
                           " and output shape ", shape.ToString(), ", found ",
                           updates.shape().ToString());
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  ZeroElements(out);
  if (updates.num_elements() == 0) return OkStatus();
  const bool known = Dispatch(updates.dtype(), ScatterTypes(), [&](auto zero) {
    using T = decltype(zero);
    using C = ComputeType<T>;
    const T* from = updates.data<T>();
    for (int64_t i = 0; i < tuples.count; ++i) {
      if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
      T* to = out->data<T>() + tuples.offset(i);
      for (int64_t j = 0; j < tuples.slice; ++j, ++from) {
        if constexpr (std::is_same_v<T, bool>) {
          to[j] = to[j] || *from;
        } else {
          to[j] = T(Plus(C(to[j]), C(*from)));
        }
      }
    }
  });
  return known ? OkStatus() : Unimplemented("no ScatterNd of ", ToString(updates.dtype()));
}

Status ScatterNdShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(PartialShape shape, c.ConstantShape(2));
  c.set_output(0, std::move(shape));
  return OkStatus();
}

void ScatterNdGrad(GradContext& g) { g.dx(1) = GatherNd(g.dy(0), g.in(0)); }

}  // namespace

void RegisterScatterNdOps(OpRegistry& ops) {
  ops.Get("GatherNd")
      .Shape(GatherNdShape)
      .Kernel(kCpu, GatherNdKernel)
      .Grad(GatherNdGrad)
      .Example({Shape{3, 4}, Tensor::Of<int32_t>({3, 1}, {2, 0, 2})})
      .Example({Shape{3, 4}, Tensor::Of<int64_t>({2, 2}, {2, 0, 1, 3})});
  ops.Get("ScatterNd")
      .Shape(ScatterNdShape)
      .Kernel(kCpu, ScatterNdKernel,
              {.types = {{"T", DTypesOf(ScatterTypes())}}, .host_args = {"shape"}})
      .Grad(ScatterNdGrad)
      .Example(
          {Tensor::Of<int32_t>({3, 1}, {2, 0, 2}), Shape{3, 2}, Tensor::Vector<int32_t>({4, 2})});
}

}  // namespace tenon
