// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/composition.h"
#include "ops/math/math_ops.h"
#include "ops/maths.h"
#include "ops/reduce_segments.h"
#include "ops/sparse/sparse_ops.h"
#include "ops/sparse/sparse_tensor.h"

namespace tenon {
namespace {

/// A reduction along some axes: the sizes that stay, 1 for the axes that do not, and for each entry
/// its place in what has these sizes.
struct SparseReduction {
  DimVector kept;
  /// What keep_dims leaves: whether each dimension is in the result.
  absl::InlinedVector<bool, 4> stays;
  CountedVector<int64_t> places;
};

StatusOr<SparseReduction> PlanReduction(const SparseTensor& in, const Tensor& axes,
                                        bool keep_dims) {
  if (axes.rank() > 1) {
    return InvalidArgument("Expected reduction_axes to be a scalar or a vector; got shape: ",
                           axes.shape());
  }
  SparseReduction plan{in.dims, {}, CountedVector<int64_t>(in.size(), 0)};
  plan.stays.assign(in.rank(), true);
  TENON_ASSIGN_OR_RETURN(const IndexVector wanted, ReadIndices(axes, "reduction_axes"));
  for (const int64_t axis : wanted) {
    if (axis < -in.rank() || axis >= in.rank()) {
      return InvalidArgument("Invalid reduction dimension ", axis, ", for input with ", in.rank(),
                             " dimensions.");
    }
    const int64_t d = axis < 0 ? axis + in.rank() : axis;
    plan.kept[d] = 1;
    plan.stays[d] = keep_dims;
  }
  TENON_RETURN_IF_ERROR(in.DenseShape());
  TENON_RETURN_IF_ERROR(in.CheckBounds());
  const DimVector strides = StridesOf(plan.kept);
  for (int64_t i = 0; i < in.size(); ++i) {
    for (int d = 0; d < in.rank(); ++d) {
      if (plan.kept[d] > 1) plan.places[i] += in.index(i)[d] * strides[d];
    }
  }
  return plan;
}

/// The dimensions of `values`, one for each of the input, that are in the result.
DimVector Staying(const SparseReduction& plan, const DimVector& values) {
  DimVector staying;
  for (size_t d = 0; d < values.size(); ++d) {
    if (plan.stays[d]) staying.push_back(values[d]);
  }
  return staying;
}

template <Reduction kReduction>
Status ReduceKernel(KernelContext& ctx, const SparseTensor& in, bool keep_dims) {
  TENON_ASSIGN_OR_RETURN(const SparseReduction plan, PlanReduction(in, ctx.input(3), keep_dims));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, Staying(plan, plan.kept)));
  if (out->num_elements() == 0) return OkStatus();
  return ReduceSegments(kReduction, in.values, GroupRows(plan.places, out->num_elements()), 1, out);
}

template <Reduction kReduction>
Status ReduceToSparseKernel(KernelContext& ctx, const SparseTensor& in, bool keep_dims) {
  TENON_ASSIGN_OR_RETURN(SparseReduction plan, PlanReduction(in, ctx.input(3), keep_dims));
  CountedVector<int64_t> stored = plan.places;
  std::sort(stored.begin(), stored.end());
  stored.erase(std::unique(stored.begin(), stored.end()), stored.end());
  for (int64_t& place : plan.places) {
    place = std::lower_bound(stored.begin(), stored.end(), place) - stored.begin();
  }
  const DimVector dims = Staying(plan, plan.kept);
  SparseEntries entries(static_cast<int>(dims.size()));
  const DimVector strides = StridesOf(plan.kept);
  DimVector index(in.rank());
  for (int64_t place : stored) {
    for (int d = 0; d < in.rank(); ++d) {
      index[d] = place / strides[d];
      place %= strides[d];
    }
    entries.Add(Staying(plan, index));
  }
  TENON_RETURN_IF_ERROR(entries.WriteIndices(ctx, 0));
  TENON_RETURN_IF_ERROR(WriteVector(ctx, 2, dims));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(1, {entries.size()}));
  return ReduceSegments(kReduction, in.values, GroupRows(plan.places, entries.size()), 1, out);
}

Status ReduceShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape in, SparseInputShape(c));
  return c.Return(PartialShape::OfRank(c.attrs().GetOr("keep_dims", false) ? in.rank() : -1));
}

Status ReduceToSparseShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape in, SparseInputShape(c));
  SetSparseOutputs(c, 0, PartialShape::kUnknownDim,
                   c.attrs().GetOr("keep_dims", false) ? in.rank() : -1);
  return OkStatus();
}

/// Each entry gets the gradient of the sum that it is part of.
void ReduceSumGrad(GradContext& g) {
  const Output shape = g.in(2), rank = Size(shape);
  const Output axes = FloorMod(Reshape(g.in(3), {-1}), rank);
  const Output reduced = Cast(ScatterNd(ExpandDims(axes, -1), OnesLike(axes), Reshape(rank, {1})) >
                                  ZerosLike(Range(0, rank, 1)),
                              DType::kInt64);
  const Output one = OnesLike(shape);
  const Output kept = shape * (one - reduced) + reduced;
  g.dx(1) = GatherNd(Reshape(g.dy(0), kept), Minimum(g.in(0), kept - one));
}

// --- SparseSoftmax ---

Status SoftmaxKernel(KernelContext& ctx, const SparseTensor& in) {
  if (in.rank() < 2) {
    return InvalidArgument("Input should have rank >= 2, but received shape: [", Join(in.dims, ","),
                           "]");
  }
  TENON_RETURN_IF_ERROR(in.DenseShape());
  const CountedVector<int64_t> order = RowMajorOrder(in.indices, in.size(), in.rank());
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.values.shape()));
  const auto row = [&](int64_t k) { return in.index(order[k]).first(in.rank() - 1); };
  return DispatchStatus(out->dtype(), TypeList<float, double, Half>(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    const T* x = in.values.data<T>();
    T* y = out->data<T>();
    for (int64_t begin = 0, end; begin < in.size(); begin = end) {
      C largest(x[order[begin]]);
      for (end = begin + 1; end < in.size() && row(end) == row(begin); ++end) {
        largest = std::max(largest, C(x[order[end]]));
      }
      C sum(0);
      for (int64_t k = begin; k < end; ++k) sum += std::exp(C(x[order[k]]) - largest);
      for (int64_t k = begin; k < end; ++k) y[k] = T(std::exp(C(x[order[k]]) - largest) / sum);
    }
  });
}

void SoftmaxGrad(GradContext& g) {
  const Output indices = g.in(0), shape = g.in(2), y = g.out(0), dy = g.dy(0);
  const Output sums = SparseReduceSum(indices, y * dy, shape, Const({-1}), {.keep_dims = true});
  g.dx(1) = y * SparseDenseCwiseAdd(indices, dy, shape, Neg(sums));
}

}  // namespace

void RegisterSparseReduceOps(OpRegistry& ops) {
  const auto options = [](auto types) {
    return KernelOptions{.types = {{"T", DTypesOf(types)}}, .attrs = {"keep_dims"}};
  };
  const Tensor indices = Tensor::Of<int64_t>({4, 3}, {0, 0, 1, 0, 1, 2, 1, 0, 1, 1, 1, 0});
  const Tensor shape = Tensor::Vector<int64_t>({2, 2, 3});
  const std::vector<ExampleInput> example = {indices, Shape{4}, shape, Tensor::Vector({0, -1})};
  const AttributeMap keep = {{"keep_dims", true}};
  ops.Add("SparseReduceSum", ReduceShape, ReduceKernel<Reduction::kSum>, options(NumericTypes()))
      .Grad(ReduceSumGrad)
      .Example(example)
      .Example(example, keep);
  ops.Add("SparseReduceMax", ReduceShape, ReduceKernel<Reduction::kMax>, options(RealTypes()))
      .Example(example)
      .Example(example, keep);
  ops.Add("SparseReduceSumSparse", ReduceToSparseShape, ReduceToSparseKernel<Reduction::kSum>,
          options(NumericTypes()))
      .Example(example)
      .Example(example, keep);
  ops.Add("SparseReduceMaxSparse", ReduceToSparseShape, ReduceToSparseKernel<Reduction::kMax>,
          options(RealTypes()))
      .Example(example)
      .Example(example, keep);
  ops.Add("SparseSoftmax", SoftmaxKernel).Grad(SoftmaxGrad).Example({indices, Shape{4}, shape});
}

}  // namespace tenon
