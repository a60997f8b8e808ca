// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/reduce_segments.h"
#include "ops/sparse/sparse_ops.h"

namespace tenon {
namespace {

/// Inputs 1 and 2, which name rows and the segments they go to or come from.
struct IndicesAndIds {
  IndexVector indices;
  IndexVector ids;
};

StatusOr<IndicesAndIds> ReadIndicesAndIds(const KernelContext& ctx) {
  const Tensor &indices = ctx.input(1), &segment_ids = ctx.input(2);
  TENON_RETURN_IF_ERROR(CheckRank(indices, 1, "indices"));
  TENON_RETURN_IF_ERROR(CheckRank(segment_ids, 1, "segment_ids"));
  if (indices.dim(0) != segment_ids.dim(0)) {
    return InvalidArgument("segment_ids and indices should have same size, found ",
                           segment_ids.dim(0), " and ", indices.dim(0));
  }
  TENON_ASSIGN_OR_RETURN(IndexVector rows, ReadIndices(indices, "indices"));
  TENON_ASSIGN_OR_RETURN(IndexVector ids, ReadIndices(segment_ids, "segment_ids"));
  return IndicesAndIds{std::move(rows), std::move(ids)};
}

/// In TensorFlow's words, which its clients look for.
Status CheckIndices(const IndexVector& indices, int64_t limit) {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= 0 && indices[i] < limit) continue;
    return InvalidArgument("indices[", i, "] == ", indices[i], " out of range [0, ", limit, ")");
  }
  return OkStatus();
}

template <Reduction kReduction>
Status SparseSegmentKernel(KernelContext& ctx, const Tensor& data) {
  if (data.rank() < 1) return InvalidArgument("data must be at least rank 1, found a scalar");
  TENON_ASSIGN_OR_RETURN(const IndicesAndIds in, ReadIndicesAndIds(ctx));
  std::optional<int64_t> limit;
  if (ctx.num_inputs() > 3) {
    TENON_ASSIGN_OR_RETURN(limit, ReadInteger(ctx.input(3), "num_segments"));
    if (*limit < 0) {
      return InvalidArgument("Cannot specify a negative value for num_segments, found ", *limit);
    }
  }
  TENON_ASSIGN_OR_RETURN(const int64_t segments, SortedSegments(in.ids, limit));
  const auto row = data.shape().dims().subspan(1);
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(Concat({segments}, row)));
  TENON_RETURN_IF_ERROR(CheckIndices(in.indices, data.dim(0)));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return OkStatus();
  return ReduceSegments(kReduction, data, GroupRows(in.ids, segments, in.indices), Product(row),
                        out, {.keep_negative_zero = true});
}

/// The inverse of the number of rows of each segment, or of its root; empty for kSum.
CountedVector<double> ScalesOf(Reduction reduction, const IndexVector& ids, int64_t segments) {
  if (reduction == Reduction::kSum) return {};
  CountedVector<double> scales(segments, 0);
  for (const int64_t id : ids) ++scales[id];
  for (double& s : scales) s = 1 / std::max(s, 1.0);
  if (reduction == Reduction::kSqrtN) {
    for (double& s : scales) s = std::sqrt(s);
  }
  return scales;
}

/// output[indices[i]] += grad[segment_ids[i]] * scale; with kCompact only the rows that are named.
template <Reduction kReduction, bool kCompact>
Status SparseSegmentGradKernel(KernelContext& ctx, const Tensor& grad) {
  if (grad.rank() < 1) return InvalidArgument("grad must be at least rank 1, found a scalar");
  TENON_ASSIGN_OR_RETURN(IndicesAndIds in, ReadIndicesAndIds(ctx));
  TENON_ASSIGN_OR_RETURN(int64_t rows, ReadInteger(ctx.input(3), "output_dim0"));
  if (rows < 0) return InvalidArgument("output_dim0 = ", rows, " must not be negative");
  if (rows == 0) in = {};  // TensorFlow does not look at the indices then
  for (const int64_t id : in.ids) {
    if (id >= 0 && id < grad.dim(0)) continue;
    return InvalidArgument("Segment id ", id, " out of range [0, ", grad.dim(0),
                           "), the rows of grad: Invalid number of segments");
  }
  for (const int64_t index : in.indices) {
    if (index >= 0 && index < rows) continue;
    return InvalidArgument("Index ", index, " out of range [0, ", rows,
                           "), the rows of the result");
  }
  if (kCompact) {
    IndexVector named = in.indices;
    std::sort(named.begin(), named.end());
    named.erase(std::unique(named.begin(), named.end()), named.end());
    for (int64_t& index : in.indices) {
      index = std::lower_bound(named.begin(), named.end(), index) - named.begin();
    }
    rows = static_cast<int64_t>(named.size());
    TENON_ASSIGN_OR_RETURN(Tensor * numbers, ctx.AllocateOutput(1, {rows}));
    WriteIntegers(named, numbers);
  }
  const auto row = grad.shape().dims().subspan(1);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, Concat({rows}, row)));
  if (out->num_elements() == 0) return OkStatus();
  const CountedVector<double> scales = ScalesOf(kReduction, in.ids, grad.dim(0));
  return ReduceSegments(Reduction::kSum, grad, GroupRows(in.indices, rows, in.ids), Product(row),
                        out, {.keep_negative_zero = true, .scales = scales});
}

/// The first size is input 3, or unknown when that is not there or `compact`.
Status RowsShape(ShapeContext& c, bool compact) {
  TENON_ASSIGN_OR_RETURN(const PartialShape data, c.WithRankAtLeast(0, 1));
  TENON_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(1, 1));
  TENON_ASSIGN_OR_RETURN(const PartialShape ids, c.WithRank(2, 1));
  TENON_RETURN_IF_ERROR(indices.MergeWith(ids));
  int64_t rows = PartialShape::kUnknownDim;
  if (c.num_inputs() > 3 && !compact) {
    TENON_RETURN_IF_ERROR(c.WithRank(3, 0));
    if (c.constant(3) != nullptr) {
      TENON_ASSIGN_OR_RETURN(rows, ReadInteger(*c.constant(3), "the number of rows"));
      if (rows < 0)
        return InvalidArgument(
            "Cannot specify a negative value for num_segments or output_dim0, found ", rows);
    }
  }
  return c.Return(data.WithDim(0, rows));
}

Status SparseSegmentShape(ShapeContext& c) { return RowsShape(c, false); }

Status SparseSegmentGradV2Shape(ShapeContext& c) {
  c.set_output(1, PartialShape::OfRank(1));
  return RowsShape(c, true);
}

}  // namespace

void RegisterSparseSegmentOps(OpRegistry& ops) {
  const Tensor indices = Tensor::Vector<int32_t>({2, 0, 2, 1});
  const Tensor ids = Tensor::Vector<int32_t>({0, 0, 1, 3});
  const auto forward = [&](std::string_view name, auto kernel, auto types, auto grad) {
    const KernelOptions options = {.types = {{"T", DTypesOf(types)}}};
    const auto gradient = [grad](GradContext& g) {
      const Output rows = Gather(ShapeOf(g.in(0)), 0);
      g.dx(0) = grad(g.dy(0), g.in(1), g.in(2), rows);
    };
    const std::vector<ExampleInput> example = {Shape{3, 2}, indices, ids};
    ops.Add(name, SparseSegmentShape, kernel, options).Grad(gradient).Example(example);
    std::vector<ExampleInput> with_number = example;
    with_number.push_back(Tensor::Scalar<int32_t>(5));
    ops.Add(StrCat(name, "WithNumSegments"), SparseSegmentShape, kernel, options)
        .Grad(gradient)
        .Example(with_number);
  };
  const auto backward = [&](std::string_view name, auto kernel, auto compact) {
    const std::vector<ExampleInput> example = {Shape{4, 2}, indices, ids, Tensor::Scalar(3)};
    ops.Add(StrCat(name, "Grad"), SparseSegmentShape, kernel).Example(example);
    ops.Add(StrCat(name, "GradV2"), SparseSegmentGradV2Shape, compact).Example(example);
  };
  constexpr auto kSum = Reduction::kSum, kMean = Reduction::kMean, kSqrtN = Reduction::kSqrtN;
  forward("SparseSegmentSum", SparseSegmentKernel<kSum>, RealTypes(),
          [](auto... in) { return SparseSegmentSumGrad(in...); });
  forward("SparseSegmentMean", SparseSegmentKernel<kMean>, FloatTypes(),
          [](auto... in) { return SparseSegmentMeanGrad(in...); });
  forward("SparseSegmentSqrtN", SparseSegmentKernel<kSqrtN>, FloatTypes(),
          [](auto... in) { return SparseSegmentSqrtNGrad(in...); });
  backward("SparseSegmentSum", SparseSegmentGradKernel<kSum, false>,
           SparseSegmentGradKernel<kSum, true>);
  backward("SparseSegmentMean", SparseSegmentGradKernel<kMean, false>,
           SparseSegmentGradKernel<kMean, true>);
  backward("SparseSegmentSqrtN", SparseSegmentGradKernel<kSqrtN, false>,
           SparseSegmentGradKernel<kSqrtN, true>);
}

}  // namespace tenon
