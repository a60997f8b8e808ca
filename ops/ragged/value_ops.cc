// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/math/bincount.h"
#include "ops/maths.h"
#include "ops/ragged/ragged_ops.h"
#include "ops/ragged/splits.h"

namespace tenon {

StatusOr<IndexVector> ReadSplits(const Tensor& t) {
  TENON_RETURN_IF_ERROR(CheckRank(t, 1, "ragged splits"));
  TENON_ASSIGN_OR_RETURN(IndexVector splits, ReadIndices(t, "ragged splits"));
  if (splits.empty()) {
    return InvalidArgument("ragged splits may not be empty: Splits must be non-empty");
  }
  if (splits[0] < 0) return InvalidArgument("Ragged splits must be non-negative");
  for (size_t i = 1; i < splits.size(); ++i) {
    if (splits[i] >= splits[i - 1]) continue;
    return InvalidArgument(
        "Ragged splits must be sorted: they should be non decreasing, but we got ", splits[i - 1],
        " followed by ", splits[i]);
  }
  return splits;
}

StatusOr<std::vector<IndexVector>> ReadNestedSplits(const KernelContext& ctx, int count,
                                                    int64_t values, bool all) {
  std::vector<IndexVector> nested;
  for (int i = 0; i < count; ++i) {
    TENON_ASSIGN_OR_RETURN(IndexVector splits, ReadSplits(ctx.input(i)));
    nested.push_back(std::move(splits));
  }
  for (int i = 0; i < count; ++i) {
    const int64_t next = i + 1 < count ? static_cast<int64_t>(nested[i + 1].size()) - 1 : values;
    if (all && nested[i].front() != 0) {
      return InvalidArgument("First value of ragged splits must be 0, found ", nested[i].front());
    }
    if (all && nested[i].back() != next) {
      return InvalidArgument(
          "Final value of ragged splits must match the length the corresponding "
          "ragged values, ",
          next, ", found ", nested[i].back());
    }
    if (nested[i].back() > next) {
      return InvalidArgument("Ragged splits must not point past values: ", nested[i].back(),
                             " is beyond ", next);
    }
  }
  return nested;
}

Status WriteSplits(KernelContext& ctx, int output, absl::Span<const int64_t> splits) {
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.AllocateOutput(output, {static_cast<int64_t>(splits.size())}));
  if (out->dtype() == DType::kInt32 && splits.back() > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("splits up to ", splits.back(), " do not fit int32");
  }
  WriteIntegers(splits, out);
  return OkStatus();
}

namespace {

// --- RaggedRange ---

/// How many numbers there are from `start` to below `limit` (above, if `delta` is negative).
template <typename T>
StatusOr<int64_t> RangeLength(T start, T limit, T delta) {
  if (delta == T(0)) return InvalidArgument("Requires delta != 0");
  if (delta > T(0) ? !(start < limit) : !(limit < start)) {
    if (start != start || limit != limit) return InvalidArgument("a range of NaN");
    return 0;
  }
  if constexpr (std::is_floating_point_v<T>) {
    const T length = std::ceil(std::abs((limit - start) / delta));
    if (length < T(1ll << 62)) return static_cast<int64_t>(length);
  } else {
    // Distances of signed numbers fit their unsigned type.
    using U = std::make_unsigned_t<T>;
    const U distance = delta > 0 ? U(limit) - U(start) : U(start) - U(limit);
    const U step = delta > 0 ? U(delta) : U(0) - U(delta);
    const uint64_t length = (distance - 1) / step + 1;
    if (length <= INT64_MAX) return static_cast<int64_t>(length);
  }
  return InvalidArgument("a range from ", start, " to ", limit, " in steps of ", delta,
                         " is too long");
}

Status RangeKernel(KernelContext& ctx) {
  int64_t rows = 1;
  bool vectors = false;
  for (int i = 0; i < 3; ++i) {
    const Tensor& t = ctx.input(i);
    if (t.rank() > 1) {
      return InvalidArgument("starts, limits and deltas must be scalars or vectors, found shape ",
                             t.shape());
    }
    if (t.rank() == 0) continue;
    if (vectors && t.dim(0) != rows) {
      return InvalidArgument(
          "starts, limits, and deltas must have the same shape, found vectors of ", rows, " and ",
          t.dim(0));
    }
    vectors = true;
    rows = t.dim(0);
  }
  using Types = TypeList<float, double, int32_t, int64_t>;
  return DispatchStatus(ctx.input(0).dtype(), Types(), [&]<typename T>(T) -> Status {
    const auto at = [&](int input, int64_t row) {
      return ctx.input(input).data<T>()[ctx.input(input).rank() == 0 ? 0 : row];
    };
    CountedVector<int64_t> splits(rows + 1, 0);
    for (int64_t r = 0; r < rows; ++r) {
      TENON_ASSIGN_OR_RETURN(const int64_t length, RangeLength(at(0, r), at(1, r), at(2, r)));
      TENON_ASSIGN_OR_RETURN(splits[r + 1], AddSizes(splits[r], length));
    }
    TENON_RETURN_IF_ERROR(WriteSplits(ctx, 0, splits));
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(1, {splits.back()}));
    T* to = out->data<T>();
    for (int64_t r = 0; r < rows; ++r) {
      T value = at(0, r);
      for (int64_t k = splits[r]; k < splits[r + 1]; ++k, value = Plus(value, at(2, r))) {
        if (k % kStepsBetweenLooks == 0 && Interrupted()) return OkStatus();
        to[k] = value;
      }
    }
    return OkStatus();
  });
}

Status RangeShape(ShapeContext& c) {
  int64_t rows = 1;
  for (int i = 0; i < 3; ++i) {
    if (!c.input(i).rank_known()) rows = PartialShape::kUnknownDim;
    if (c.input(i).rank() > 1) return InvalidArgument("starts, limits and deltas must be vectors");
    if (c.input(i).rank() == 1) rows = c.input(i).dim(0);
  }
  TENON_ASSIGN_OR_RETURN(const int64_t splits, rows < 0 ? rows : AddSizes(rows, 1));
  c.set_output(0, PartialShape{splits});
  c.set_output(1, PartialShape::OfRank(1));
  return OkStatus();
}

// --- RaggedTensorToSparse ---

Status ToSparseKernel(KernelContext& ctx) {
  const int ragged = ctx.num_inputs() - 1;
  const Tensor& values = ctx.input(ragged);
  if (values.rank() < 1) return InvalidArgument("the values must be at least a vector");
  TENON_ASSIGN_OR_RETURN(const std::vector<IndexVector> nested,
                         ReadNestedSplits(ctx, ragged, values.dim(0), true));
  const int rank = ragged + values.rank();
  const auto value_dims = values.shape().dims().subspan(1);
  const int64_t width = Product(value_dims);
  DimVector dims = {static_cast<int64_t>(nested[0].size()) - 1};
  for (const IndexVector& splits : nested) {
    int64_t longest = 0;
    for (size_t i = 1; i < splits.size(); ++i)
      longest = std::max(longest, splits[i] - splits[i - 1]);
    dims.push_back(longest);
  }
  dims = Concat(dims, value_dims);
  TENON_ASSIGN_OR_RETURN(Tensor * indices, ctx.CreateOutput(0, {values.num_elements(), rank}));
  TENON_ASSIGN_OR_RETURN(Tensor flat, values.Reshaped(Shape{values.num_elements()}));
  ctx.set_output(1, std::move(flat));
  TENON_ASSIGN_OR_RETURN(Tensor * shape, ctx.AllocateOutput(2, {rank}));
  WriteIntegers(dims, shape);
  const DimVector strides = StridesOf(value_dims);
  // The row of each dimension that the value is in, which grows as the values go on.
  DimVector row(ragged, 0);
  int64_t* at = indices->data<int64_t>();
  for (int64_t i = 0; i < values.dim(0); ++i) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
    DimVector index(rank, 0);
    int64_t item = i;
    for (int d = ragged - 1; d >= 0; --d) {
      while (nested[d][row[d] + 1] <= item) ++row[d];
      index[d + 1] = item - nested[d][row[d]];
      item = row[d];
    }
    index[0] = item;
    for (int64_t k = 0; k < width; ++k) {
      int64_t place = k;
      for (size_t d = 0; d < strides.size(); ++d) {
        index[ragged + 1 + d] = place / strides[d];
        place %= strides[d];
      }
      at = std::copy(index.begin(), index.end(), at);
    }
  }
  return OkStatus();
}

Status ToSparseShape(ShapeContext& c) {
  const int ragged = c.num_inputs() - 1;
  for (int i = 0; i < ragged; ++i) TENON_RETURN_IF_ERROR(c.WithRank(i, 1));
  TENON_ASSIGN_OR_RETURN(const PartialShape values, c.WithRankAtLeast(ragged, 1));
  const int64_t rank = values.rank_known() ? ragged + values.rank() : PartialShape::kUnknownDim;
  const int64_t count = values.num_elements().value_or(PartialShape::kUnknownDim);
  c.set_output(0, PartialShape{count, rank});
  c.set_output(1, PartialShape{count});
  c.set_output(2, PartialShape{rank});
  return OkStatus();
}

// --- RaggedGather ---

Status GatherKernel(KernelContext& ctx) {
  const int ragged = ctx.num_inputs() - 2, out_ragged = ctx.num_outputs() - 1;
  const Tensor &values = ctx.input(ragged), &indices = ctx.input(ragged + 1);
  if (values.rank() < 1) return InvalidArgument("the values must be at least a vector");
  if (out_ragged != ragged + indices.rank() - 1) {
    return InvalidArgument("OUTPUT_RAGGED_RANK must be ", ragged + indices.rank() - 1, ", found ",
                           out_ragged);
  }
  TENON_ASSIGN_OR_RETURN(const std::vector<IndexVector> nested,
                         ReadNestedSplits(ctx, ragged, values.dim(0), false));
  TENON_ASSIGN_OR_RETURN(
      const IndexVector rows,
      ReadIndices(indices, "indices", static_cast<int64_t>(nested[0].size()) - 1));
  // The dimensions of indices after the first become splits of equal rows.
  const auto dims = indices.shape().dims();
  for (int d = 0; d + 1 < indices.rank(); ++d) {
    CountedVector<int64_t> splits(Product(dims, 0, d + 1) + 1);
    for (size_t i = 0; i < splits.size(); ++i) splits[i] = static_cast<int64_t>(i) * dims[d + 1];
    TENON_RETURN_IF_ERROR(WriteSplits(ctx, d, splits));
  }
  std::vector<CountedVector<int64_t>> out(ragged, CountedVector<int64_t>(1, 0));
  CountedVector<std::pair<int64_t, int64_t>> ranges;
  int64_t count = 0;
  for (const int64_t row : rows) {
    int64_t begin = row, end = row + 1;
    for (int d = 0; d < ragged; ++d) {
      if (Interrupted()) return OkStatus();
      const IndexVector& splits = nested[d];
      for (int64_t i = begin; i < end; ++i) {
        out[d].push_back(out[d].back() + splits[i + 1] - splits[i]);
      }
      begin = splits[begin];
      end = splits[end];
    }
    ranges.emplace_back(begin, end);
    TENON_ASSIGN_OR_RETURN(count, AddSizes(count, end - begin));
  }
  // A single row has no splits of its own.
  const int first = std::max(indices.rank() - 1, 0), dropped = indices.rank() == 0 ? 1 : 0;
  for (int d = dropped; d < ragged; ++d) {
    TENON_RETURN_IF_ERROR(WriteSplits(ctx, first + d - dropped, out[d]));
  }
  const auto value_dims = values.shape().dims().subspan(1);
  TENON_ASSIGN_OR_RETURN(Tensor * to, ctx.CreateOutput(out_ragged, Concat({count}, value_dims)));
  const int64_t width = Product(value_dims);
  int64_t next = 0;
  for (const auto& [begin, end] : ranges) {
    CopyElements(values, begin * width, to, next * width, (end - begin) * width);
    next += end - begin;
  }
  return OkStatus();
}

Status GatherShape(ShapeContext& c) {
  const int ragged = c.num_inputs() - 2;
  for (int i = 0; i < ragged; ++i) TENON_RETURN_IF_ERROR(c.WithRank(i, 1));
  TENON_ASSIGN_OR_RETURN(const PartialShape values, c.WithRankAtLeast(ragged, 1));
  for (int i = 0; i + 1 < c.num_outputs(); ++i) c.set_output(i, PartialShape::OfRank(1));
  c.set_output(c.num_outputs() - 1, values.WithDim(0, PartialShape::kUnknownDim));
  return OkStatus();
}

/// The gradient of each value goes back to where it was gathered from.
void GatherGrad(GradContext& g) {
  const int ragged = g.num_inputs() - 2;
  Output splits = g.in(0);
  for (int i = 1; i < ragged; ++i) splits = Gather(g.in(i), splits);
  const Output rows = Reshape(g.in(ragged + 1), {-1});
  const Output one = OnesLike(rows);
  const auto places = RaggedRange(Gather(splits, rows), Gather(splits, rows + one),
                                  Const(1, {.dtype = splits.dtype()}));
  g.dx(ragged) = UnsortedSegmentSum(g.dy(g.node().num_outputs() - 1), places.rt_dense_values,
                                    Gather(ShapeOf(g.in(ragged)), 0));
}

// --- RaggedBincount ---

Status BincountKernel(KernelContext& ctx, bool binary_output) {
  const Tensor& values = ctx.input(1);
  TENON_RETURN_IF_ERROR(CheckRank(values, 1, "values"));
  TENON_ASSIGN_OR_RETURN(const int64_t bins, ReadBins(ctx.input(2)));
  TENON_ASSIGN_OR_RETURN(const IndexVector splits, ReadSplits(ctx.input(0)));
  if (splits.front() != 0) {
    return InvalidArgument("Splits must start with 0, not with ", splits.front());
  }
  if (splits.back() != values.dim(0)) {
    return InvalidArgument("Splits must end with the number of values, got ", splits.back(),
                           " instead of ", values.dim(0));
  }
  CountedVector<int64_t> rows(values.dim(0));
  const auto count = static_cast<int64_t>(splits.size()) - 1;
  for (int64_t r = 0; r < count; ++r) {
    std::fill(rows.begin() + splits[r], rows.begin() + splits[r + 1], r);
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, {count, bins}));
  return CountBins(values, ctx.input(3), rows, bins, binary_output, out);
}

Status BincountShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape splits, c.WithRank(0, 1));
  TENON_ASSIGN_OR_RETURN(const int64_t bins, KnownBins(c, 2));
  const int64_t rows = splits.dim(0);
  return c.Return(PartialShape{rows > 0 ? rows - 1 : PartialShape::kUnknownDim, bins});
}

}  // namespace

void RegisterRaggedValueOps(OpRegistry& ops) {
  const Tensor splits = Tensor::Vector<int64_t>({0, 2, 2, 3});
  ops.Add("RaggedRange", RangeShape, RangeKernel,
          {.types = {{"T", {DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64}}}})
      .Example({Tensor::Vector<float>({0, 5}), Tensor::Vector<float>({2, 1}),
                Tensor::Vector<float>({0.5, -3})})
      .Example({Tensor::Scalar(1), Tensor::Vector({3, 9}), Tensor::Scalar(4)});
  ops.Add("RaggedTensorToSparse", ToSparseShape, ToSparseKernel)
      .Grad([](GradContext& g) {
        const int values = g.num_inputs() - 1;
        g.dx(values) = Reshape(g.dy(1), ShapeOf(g.in(values)));
      })
      .Example({splits, Shape{3, 2}})
      .Example({Tensor::Vector<int64_t>({0, 2, 3}), splits, Shape{3}});
  ops.Add("RaggedGather", GatherShape, GatherKernel)
      .Grad(GatherGrad)
      .Example({splits, Shape{3, 2}, Tensor::Vector({2, 0, 2})}, {{"OUTPUT_RAGGED_RANK", 1}})
      .Example({Tensor::Vector<int64_t>({0, 2, 3}), splits, Shape{3}, Tensor::Scalar(1)},
               {{"OUTPUT_RAGGED_RANK", 1}})
      .Example({splits, Shape{3}, Tensor::Of({2, 1}, {2, 0})}, {{"OUTPUT_RAGGED_RANK", 2}});
  ops.Add("RaggedBincount", BincountShape, BincountKernel, {.attrs = {"binary_output"}})
      .Example({splits, Tensor::Vector<int32_t>({1, 1, 0}), Tensor::Scalar<int32_t>(2), Shape{3}});
}

}  // namespace tenon
