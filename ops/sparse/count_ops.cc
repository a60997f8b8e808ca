// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "core/base/interruption.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/maths.h"

namespace tenon {
namespace {

using WeightTypes = TypeList<float, double, int32_t, int64_t>;

/// How a node counts.
struct Counting : KernelState {
  explicit Counting(KernelConstruction& c)
      : min_length(c.Attr<int64_t>("minlength")),
        max_length(c.Attr<int64_t>("maxlength")),
        binary(c.Attr<bool>("binary_output")) {}
  int64_t min_length, max_length;
  bool binary;
};

/// Counts, or adds up `weights` if there are any, for each value of each row; `row_of(i)` is that
/// of value i. Of one row, a vector, `vector` makes the outputs vectors.
template <typename RowOf>
Status CountValues(KernelContext& ctx, const Counting& how, const Tensor& values,
                   const Tensor& weights, int64_t rows, bool vector, RowOf row_of) {
  if (weights.num_elements() > 0 && weights.shape() != values.shape()) {
    return InvalidArgument("weights must have the shape of the values, ", values.shape(),
                           ", or be empty, found shape ", weights.shape());
  }
  TENON_ASSIGN_OR_RETURN(const IndexVector numbers, ReadIndices(values, "values"));
  return DispatchStatus(ctx.output_type(1), WeightTypes(), [&]<typename W>(W) -> Status {
    using Key = std::pair<int64_t, int64_t>;
    std::map<Key, W, std::less<Key>, CountedAllocator<std::pair<const Key, W>>> counts;
    int64_t largest = 0;
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
      const int64_t value = numbers[i];
      if (value < 0 || (how.max_length >= 0 && value >= how.max_length)) continue;
      largest = std::max(largest, value);
      W& count = counts[{row_of(static_cast<int64_t>(i)), value}];
      const W more = weights.num_elements() > 0 ? weights.data<W>()[i] : W(1);
      count = how.binary ? W(1) : Plus(count, more);
    }
    const auto n = static_cast<int64_t>(counts.size());
    const int64_t columns = vector ? 1 : 2;
    TENON_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, {n, columns}));
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(1, {n}));
    int64_t* index = indices->data<int64_t>();
    W* to = out->data<W>();
    for (const auto& [key, count] : counts) {
      if (!vector) *index++ = key.first;
      *index++ = key.second;
      *to++ = count;
    }
    TENON_ASSIGN_OR_RETURN(const int64_t above, AddSizes(largest, 1));
    const int64_t width = how.max_length >= 0 ? how.max_length : std::max(above, how.min_length);
    ctx.set_output(2, vector ? Tensor::Vector({width}) : Tensor::Vector({rows, width}));
    return OkStatus();
  });
}

Status DenseCountKernel(KernelContext& ctx, const Tensor& values, const Counting& how) {
  if ((values.rank() != 1 && values.rank() != 2) || (values.rank() == 2 && values.dim(0) == 0)) {
    return InvalidArgument("values must be a vector or a matrix with rows, found shape ",
                           values.shape());
  }
  TENON_ASSIGN_OR_RETURN(const IndexVector numbers, ReadIndices(values, "values"));
  for (const int64_t value : numbers) {
    if (value < 0) return InvalidArgument("values must not be negative, found ", value);
  }
  const bool vector = values.rank() == 1;
  const int64_t width = vector ? values.dim(0) : values.dim(1);
  return CountValues(ctx, how, values, ctx.input(1), vector ? 1 : values.dim(0), vector,
                     [=](int64_t i) { return i / width; });
}

Status SparseCountKernel(KernelContext& ctx, const Counting& how) {
  const Tensor &indices = ctx.input(0), &values = ctx.input(1), &shape = ctx.input(2);
  TENON_RETURN_IF_ERROR(CheckRank(indices, 2, "indices"));
  TENON_RETURN_IF_ERROR(CheckRank(values, 1, "values"));
  TENON_RETURN_IF_ERROR(CheckRank(shape, 1, "dense_shape"));
  const int64_t rank = shape.dim(0);
  if (rank == 0 || indices.dim(0) != values.dim(0) || indices.dim(1) != rank) {
    return InvalidArgument("indices must be [", values.dim(0), ", ", rank,
                           "] of a dense_shape that is not empty, found shape ", indices.shape());
  }
  const int64_t *const dims = shape.data<int64_t>(), *const index = indices.data<int64_t>();
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    if (index[i] >= 0 && index[i] < dims[i % rank]) continue;
    return NotInRange(index[i], dims[i % rank], "indices[", i / rank, ",", i % rank, "]");
  }
  const bool vector = rank == 1;
  const int64_t rows = vector ? 1 : dims[0];
  if (rows <= 0 || rows >= INT32_MAX) {
    return InvalidArgument("dense_shape must have between 1 and 2^31 - 2 rows, found ", rows);
  }
  return CountValues(ctx, how, values, ctx.input(3), rows, vector,
                     [=](int64_t i) { return vector ? 0 : index[i * rank]; });
}

Status RaggedCountKernel(KernelContext& ctx, const Counting& how) {
  const Tensor &splits = ctx.input(0), &values = ctx.input(1);
  TENON_RETURN_IF_ERROR(CheckRank(splits, 1, "splits"));
  const auto ends = splits.flat<int64_t>();
  if (ends.size() < 2 || ends.front() != 0 || ends.back() != values.num_elements() ||
      !std::is_sorted(ends.begin(), ends.end())) {
    return InvalidArgument("splits must be at least 2 elements that rise from 0 to the number of ",
                           "values, ", values.num_elements(), ", found ", splits.ToString());
  }
  int64_t row = 0;
  return CountValues(ctx, how, values, ctx.input(2), static_cast<int64_t>(ends.size()) - 1, false,
                     [&](int64_t i) {
                       // Rows without values end before it, too.
                       if (i < ends[row]) row = 0;
                       while (i >= ends[row + 1]) ++row;
                       return row;
                     });
}

Status CountOutputs(ShapeContext& c, int64_t columns) {
  c.set_output(0, {-1, columns});
  c.set_output(1, {-1});
  c.set_output(2, {columns});
  return OkStatus();
}

Status DenseCountShape(ShapeContext& c) { return CountOutputs(c, c.input(0).rank()); }

Status SparseCountShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(0, 2));
  return CountOutputs(c, std::min<int64_t>(indices.dim(1), 2));
}

Status RaggedCountShape(ShapeContext& c) { return CountOutputs(c, 2); }

}  // namespace

void RegisterSparseCountOps(OpRegistry& ops) {
  const AttributeMap counts = {{"binary_output", false}};
  const auto values = Tensor::Of<int64_t>({2, 3}, {1, 1, 4, 0, 5, 5});
  const Tensor some = Tensor::Vector<int64_t>({1, 1, 4}), ends = Tensor::Vector<int64_t>({0, 1, 3});
  ops.Add("DenseCountSparseOutput", DenseCountShape, DenseCountKernel)
      .Example({values, Shape{2, 3}}, counts);
  ops.Add("SparseCountSparseOutput", SparseCountShape, SparseCountKernel)
      .Example({Tensor::Of<int64_t>({3, 2}, {0, 0, 0, 2, 1, 1}), some,
                Tensor::Vector<int64_t>({2, 3}), Shape{3}},
               counts);
  ops.Add("RaggedCountSparseOutput", RaggedCountShape, RaggedCountKernel)
      .Example({ends, some, Shape{0}}, {{"binary_output", true}});
}

}  // namespace tenon
