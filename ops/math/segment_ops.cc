// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/math/math_ops.h"
#include "ops/math/segments.h"
#include "ops/reduce_segments.h"

namespace tenon {
namespace {

/// Reduces the rows of input 0 by their ids, of `id_rank` dimensions and below `segments`; negative
/// ids drop theirs.
Status ReduceRows(KernelContext& ctx, Reduction reduction, const IndexVector& ids, int id_rank,
                  int64_t segments, bool zero_if_empty) {
  const Tensor& data = ctx.input(0);
  const auto row = data.shape().dims().subspan(id_rank);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, Concat({segments}, row)));
  if (out->num_elements() == 0) return OkStatus();
  return ReduceSegments(reduction, data, GroupRows(ids, segments), Product(row), out,
                        {.zero_if_empty = zero_if_empty});
}

template <Reduction kReduction>
Status SegmentKernel(KernelContext& ctx, const Tensor& data, const Tensor& segment_ids) {
  TENON_RETURN_IF_ERROR(CheckSegmentIds(data, segment_ids));
  TENON_ASSIGN_OR_RETURN(const IndexVector ids, ReadIndices(segment_ids, "segment_ids"));
  TENON_ASSIGN_OR_RETURN(const int64_t segments, SortedSegments(ids));
  return ReduceRows(ctx, kReduction, ids, 1, segments, true);
}

template <Reduction kReduction>
Status UnsortedSegmentKernel(KernelContext& ctx, const Tensor&, const Tensor& segment_ids) {
  TENON_ASSIGN_OR_RETURN(const int64_t segments, ReadNumSegments(ctx));
  TENON_ASSIGN_OR_RETURN(const IndexVector ids, ReadIndices(segment_ids, "segment_ids"));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < segments) continue;
    return SegmentOutOfRange(segment_ids.shape(), static_cast<int64_t>(i), ids[i], segments);
  }
  return ReduceRows(ctx, kReduction, ids, segment_ids.rank(), segments, false);
}

Status SegmentShape(ShapeContext& c) {
  TENON_RETURN_IF_ERROR(c.WithRankAtLeast(0, 1));
  TENON_RETURN_IF_ERROR(c.WithRank(1, 1));
  return c.Return(c.input(0).WithDim(0, PartialShape::kUnknownDim));
}

Status UnsortedSegmentShape(ShapeContext& c) {
  const PartialShape &data = c.input(0), &ids = c.input(1);
  if (!data.rank_known() || !ids.rank_known() || ids.rank() > data.rank()) return OkStatus();
  return c.Return(PartialShape{PartialShape::kUnknownDim}.ConcatWith(data.Part(ids.rank())));
}

/// The sides of a segment op, sorted or unsorted: rows of data, and rows of segments.
class Segments {
 public:
  explicit Segments(const GradContext& g) : data_(g.in(0)), ids_(g.in(1)) {
    if (g.num_inputs() > 2) num_segments_ = g.in(2);
  }

  Output Sum(const Output& rows) const {
    if (!num_segments_.exists()) return SegmentSum(rows, ids_);
    return UnsortedSegmentSum(rows, ids_, num_segments_);
  }
  Output Prod(const Output& rows) const {
    if (!num_segments_.exists()) return SegmentProd(rows, ids_);
    return UnsortedSegmentProd(rows, ids_, num_segments_);
  }
  /// To each row what its segment has. Rows whose id is negative were dropped: they get 0.
  Output Gathered(const Output& segments) const {
    if (!num_segments_.exists()) return GatherV2(segments, ids_, 0);
    const Output zero = ZerosLike(ids_);
    const Output gathered = GatherV2(segments, Maximum(ids_, zero), 0);
    return SelectV2(PerRow(ids_ >= zero), gathered, ZerosLike(gathered));
  }
  /// A value for each row as a tensor that broadcasts with data: ones behind its shape.
  Output PerRow(const Output& value) const {
    const Output shape = ShapeOf(ids_);
    const Output rank = Reshape(Size(shape), {1});
    return Reshape(value, ConcatV2({shape, Slice(OnesLike(ShapeOf(data_)), rank, {-1})}, 0));
  }

 private:
  const Output data_, ids_;
  Output num_segments_;
};

void SegmentSumGrad(GradContext& g) { g.dx(0) = Segments(g).Gathered(g.dy(0)); }

void SegmentMeanGrad(GradContext& g) {
  const Segments s(g);
  const Output counts = s.Sum(s.PerRow(Cast(OnesLike(g.in(1)), g.dy(0).dtype())));
  g.dx(0) = s.Gathered(g.dy(0) / counts);
}

/// Rows that share the extreme value share its gradient.
void SegmentExtremeGrad(GradContext& g) {
  const Segments s(g);
  const Output chosen = Equal(g.in(0), s.Gathered(g.out(0)));
  const Output shares = s.Gathered(g.dy(0) / s.Sum(Cast(chosen, g.dy(0).dtype())));
  g.dx(0) = SelectV2(chosen, shares, ZerosLike(shares));
}

/// The product of the other rows: by division, unless the row is 0. Where two or more are, it is 0
/// for all.
void SegmentProdGrad(GradContext& g) {
  const Segments s(g);
  const Output data = g.in(0), zero = ZerosLike(data);
  const Output is_zero = Equal(data, zero);
  const Output zeros = s.Sum(Cast(is_zero, DType::kInt32));
  const Output dy = SelectV2(zeros > OnesLike(zeros), ZerosLike(g.dy(0)), g.dy(0));
  const Output others = SelectV2(is_zero, OnesLike(data), data);
  const Output partial =
      SelectV2(is_zero, s.Gathered(s.Prod(others)), s.Gathered(g.out(0)) / others);
  g.dx(0) = s.Gathered(dy) * partial;
}

}  // namespace

Status CheckSegmentIds(const Tensor& data, const Tensor& segment_ids) {
  TENON_RETURN_IF_ERROR(CheckRank(segment_ids, 1, "segment_ids"));
  if (data.rank() >= 1 && data.dim(0) == segment_ids.dim(0)) return OkStatus();
  return InvalidArgument("segment_ids should be the same size as dimension 0 of input: ",
                         segment_ids.shape(), " vs. ", data.shape());
}

StatusOr<int64_t> ReadNumSegments(const KernelContext& ctx) {
  TENON_RETURN_IF_ERROR(CheckPrefix(ctx.input(0), "data", ctx.input(1), "segment_ids"));
  TENON_ASSIGN_OR_RETURN(const int64_t segments, ReadInteger(ctx.input(2), "num_segments"));
  if (segments >= 0) return segments;
  return InvalidArgument("num_segments = ", segments, " must not be negative");
}

Status SegmentOutOfRange(const Shape& segment_ids, int64_t i, int64_t id, int64_t segments) {
  return InvalidArgument(ElementName("segment_ids", segment_ids.dims(), i), " = ", id,
                         " is out of range [0, ", segments, ")");
}

void RegisterSegmentOps(OpRegistry& ops) {
  const auto add = [&ops](std::string_view name, auto kernel, const DTypeVector& types,
                          void (*grad)(GradContext&)) {
    ops.Add(name, SegmentShape, kernel, {.types = {{"T", types}}})
        .Grad(grad)
        .Example({Shape{4, 2}, Tensor::Vector<int32_t>({0, 0, 1, 3})});
  };
  const auto add_unsorted = [&ops](std::string_view name, auto kernel, const DTypeVector& types,
                                   void (*grad)(GradContext&)) {
    const Tensor segments = Tensor::Scalar<int32_t>(3);
    ops.Add(name, UnsortedSegmentShape, kernel, {.types = {{"T", types}}})
        .Grad(grad)
        .Example({Shape{5, 2}, Tensor::Vector<int32_t>({2, 0, -1, 1, 2}), segments})
        .Example({Shape{2, 2, 3}, Tensor::Of<int64_t>({2, 2}, {0, 1, 1, 0}),
                  Tensor::Scalar<int32_t>(2)});
  };
  const DTypeVector real = DTypesOf(RealTypes()), numeric = DTypesOf(NumericTypes());
  add("SegmentSum", SegmentKernel<Reduction::kSum>, numeric, SegmentSumGrad);
  add("SegmentMean", SegmentKernel<Reduction::kMean>, numeric, SegmentMeanGrad);
  add("SegmentProd", SegmentKernel<Reduction::kProd>, numeric, SegmentProdGrad);
  add("SegmentMax", SegmentKernel<Reduction::kMax>, real, SegmentExtremeGrad);
  add("SegmentMin", SegmentKernel<Reduction::kMin>, real, SegmentExtremeGrad);
  add_unsorted("UnsortedSegmentSum", UnsortedSegmentKernel<Reduction::kSum>, numeric,
               SegmentSumGrad);
  add_unsorted("UnsortedSegmentProd", UnsortedSegmentKernel<Reduction::kProd>, numeric,
               SegmentProdGrad);
  add_unsorted("UnsortedSegmentMax", UnsortedSegmentKernel<Reduction::kMax>, real,
               SegmentExtremeGrad);
  add_unsorted("UnsortedSegmentMin", UnsortedSegmentKernel<Reduction::kMin>, real,
               SegmentExtremeGrad);
}

}  // namespace tenon
