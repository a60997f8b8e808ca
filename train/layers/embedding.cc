// SPDX-License-Identifier: Apache-2.0
#include "train/layers/embedding.h"

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/sparse/sparse_ops.h"
#include "ops/state/state_ops.h"
#include "train/optimizers/clipping.h"

namespace tenon {
namespace {

/// The rows of one part, gathered where it is: it does not travel.
Output RowsOf(const Variable& part, const Output& ids) {
  if (!part.ref().exists()) return {};
  const ColocateWith beside(part.ref());
  if (part.ref().dtype() == DType::kResource) {
    return ResourceGather(part.ref(), ids, part.value().dtype());
  }
  return GatherV2(part, ids, 0);
}

/// Rows of the shape `row` with norms of at most that, when there is a limit.
Output WithinNorm(const Output& rows, const PartialShape& row, double max_norm) {
  if (max_norm == 0 || !rows.exists()) return rows;
  // In a table of numbers each number is a row by itself.
  if (row.rank() == 0) return ClipByValue(rows, -max_norm, max_norm);
  std::vector<int> axes;
  for (int i = -row.rank(); i < 0; ++i) axes.push_back(i);
  return ClipByNorm(rows, max_norm, {.axes = axes});
}

/// For each id, the part that has it and its row there.
struct Places {
  Output parts, rows;
};

Places FindPlaces(const std::vector<Variable>& parts, const Output& ids,
                  PartitionStrategy strategy) {
  const auto n = static_cast<int64_t>(parts.size());
  const auto number = [&](int64_t value) { return Const(value, {.dtype = ids.dtype()}); };
  if (strategy == PartitionStrategy::kMod) {
    return {FloorMod(ids, number(n)), FloorDiv(ids, number(n))};
  }
  int64_t rows = 0;
  for (const Variable& part : parts) rows += part.value().shape().dim(0);
  // The first `extras` parts have a row more than the others.
  const int64_t per_part = rows / n, extras = rows % n;
  const Output part = Maximum(FloorDiv(ids, number(per_part + 1)),
                              FloorDiv(ids - number(extras), number(per_part)));
  return {part, SelectV2(part < number(extras), FloorMod(ids, number(per_part + 1)),
                         FloorMod(ids - number(extras), number(per_part)))};
}

/// The means of weighted rows by segment.
Output CombineWeighted(const Output& rows, const Output& weights, const Output& segments,
                       Combiner combiner) {
  Output w = weights.dtype() == rows.dtype() ? weights : Cast(weights, rows.dtype());
  std::vector<int64_t> column(rows.shape().rank(), 1);
  column[0] = -1;
  w = Reshape(w, Const(column));
  const Output sum = SegmentSum(rows * w, segments);
  if (combiner == Combiner::kSum) return sum;
  if (combiner == Combiner::kMean) return DivNoNan(sum, SegmentSum(w, segments));
  return DivNoNan(sum, Sqrt(SegmentSum(Square(w), segments)));
}

}  // namespace

PartitionedVariable::PartitionedVariable(std::string_view name, const std::vector<int64_t>& shape,
                                         int partitions,
                                         const PartitionedVariableOptions& options) {
  const CalledFrom caller(options.location);
  const OutsideFlowScopes names;
  const BuildContext& context = CurrentBuilding();
  if (shape.empty() || partitions < 1 || partitions > shape[0]) {
    context.Fail(InvalidArgument("variable '", name, "' cannot have ", partitions,
                                 " parts: they must be between 1 and its number of rows, ",
                                 shape.empty() ? 0 : shape[0]),
                 options.location);
    return;
  }
  const NameScope scope(name);
  const std::string whole = context.prefix + std::string(name);
  int64_t begin = 0;
  for (int i = 0; i < partitions; ++i) {
    std::vector<int64_t> extent = shape, from(shape.size(), 0);
    extent[0] = shape[0] / partitions + (i < shape[0] % partitions ? 1 : 0);
    from[0] = begin;
    begin += extent[0];
    parts_.push_back(MakeWeight(StrCat("part_", i), extent, options.dtype,
                                {options.initializer, options.regularizer, options.trainable,
                                 VariablePart{whole, shape, from, extent}}));
  }
}

Output EmbeddingLookup(const PartitionedVariable& params, const Input& input,
                       const EmbeddingLookupOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  const NameScope scope(UnusedScope(options.name));
  const Output ids = Const(input);
  const std::vector<Variable>& parts = params.parts();
  if (parts.empty()) {
    context.Fail(InvalidArgument("an embedding lookup in a variable without parts"),
                 options.location);
  }
  if (!(options.max_norm >= 0)) {
    context.Fail(InvalidArgument("the max_norm of an embedding lookup must be above 0, or 0 for "
                                 "none, found ",
                                 options.max_norm),
                 options.location);
  }
  if (!context.graph->error().ok()) return {};
  const PartialShape row = parts[0].value().shape().Part(1);
  if (parts.size() == 1) {
    const ColocateWith beside(parts[0].ref());
    return WithinNorm(RowsOf(parts[0], ids), row, options.max_norm);
  }

  const Output flat = Reshape(ids, {-1});
  const auto [part, rows] = FindPlaces(parts, flat, options.partition_strategy);
  const auto n = static_cast<int64_t>(parts.size());
  const Output assignment = Cast(part, DType::kInt32);
  const std::vector<Output> wanted = DynamicPartition(rows, assignment, n);
  const std::vector<Output> places = DynamicPartition(Range(0, Size(flat), 1), assignment, n);
  std::vector<Output> gathered;
  for (size_t i = 0; i < parts.size(); ++i) gathered.push_back(RowsOf(parts[i], wanted[i]));
  if (!context.graph->error().ok()) return {};
  const Output stitched = ParallelDynamicStitch(places, gathered);
  const Output dims = ConcatV2(
      {ShapeOf(ids), Const(Tensor::Vector<int32_t>({row.dims().begin(), row.dims().end()}))}, 0);
  const Output result = Reshape(stitched, dims);
  return WithinNorm(EnsureShape(result, ids.shape().ConcatWith(row)), row, options.max_norm);
}

Output EmbeddingLookupSparse(const PartitionedVariable& params, const SparseIds& ids,
                             const EmbeddingLookupSparseOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  const NameScope scope(UnusedScope(options.name));
  if (!context.graph->error().ok()) return {};
  const Output segments = Cast(ids.indices[{{}, 0}], DType::kInt32);
  const auto [distinct, which] = Unique(ids.values);
  const Output rows =
      EmbeddingLookup(params, distinct, {options.partition_strategy, options.max_norm});
  if (!context.graph->error().ok()) return {};
  if (options.weights.exists()) {
    return CombineWeighted(GatherV2(rows, which, 0), options.weights, segments, options.combiner);
  }
  switch (options.combiner) {
    case Combiner::kSum:
      return SparseSegmentSum(rows, which, segments);
    case Combiner::kMean:
      return SparseSegmentMean(rows, which, segments);
    case Combiner::kSqrtn:
      break;
  }
  return SparseSegmentSqrtN(rows, which, segments);
}

Embedding::Embedding(int64_t input_dim, int64_t output_dim, const EmbeddingOptions& options)
    : input_dim_(input_dim),
      output_dim_(output_dim),
      options_(options),
      state_(std::make_shared<State>(options.name)) {}

Output Embedding::operator()(const Input& ids) const {
  const InLayer layer(*state_, ids.location());
  if (layer.is_first()) {
    const std::vector<int64_t> shape{input_dim_, output_dim_};
    if (options_.partitions == 1) {
      state_->embeddings = MakeWeight(
          "embeddings", shape, options_.dtype,
          {options_.embeddings_initializer, options_.embeddings_regularizer, options_.trainable});
    } else {
      state_->embeddings =
          PartitionedVariable("embeddings", shape, options_.partitions,
                              {options_.dtype, options_.embeddings_initializer,
                               options_.embeddings_regularizer, options_.trainable});
    }
  }
  return EmbeddingLookup(*state_->embeddings, ids,
                         {options_.partition_strategy, options_.max_norm});
}

}  // namespace tenon
