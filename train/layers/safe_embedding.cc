// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/sparse/sparse_ops.h"
#include "train/layers/embedding.h"

namespace tenon {
namespace {

/// The entries of a sparse matrix of ids, with their weights, if any.
struct Entries {
  Output indices, values, weights;

  /// The entries for which `keep` is true.
  Entries Where(const Output& keep) const {
    const Output places = Reshape(tenon::Where(keep), {-1});
    const auto kept = [&](const Output& x) { return GatherV2(x, places, 0); };
    return {kept(indices), kept(values), weights.exists() ? kept(weights) : weights};
  }
};

}  // namespace

Output SafeEmbeddingLookupSparse(const PartitionedVariable& params, const SparseIds& ids,
                                 const SafeEmbeddingLookupSparseOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  const NameScope scope(UnusedScope(options.name));
  if (!ids.dense_shape.exists()) {
    context.Fail(InvalidArgument("a safe embedding lookup needs the dense_shape of the ids"),
                 options.location);
  }
  if (!context.graph->error().ok()) return {};
  Entries entries{ids.indices, ids.values, options.weights};
  entries = entries.Where(entries.values >= 0);
  if (entries.weights.exists() && options.combiner != Combiner::kSum) {
    entries = entries.Where(entries.weights > 0);
  }
  const Output none =
      Const(std::max<int64_t>(options.default_id, 0), {.dtype = entries.values.dtype()});
  const auto filled = SparseFillEmptyRows(entries.indices, entries.values, ids.dense_shape, none);
  if (entries.weights.exists()) {
    const Output one = Const(1, {.dtype = entries.weights.dtype()});
    entries.weights =
        SparseFillEmptyRows(entries.indices, entries.weights, ids.dense_shape, one).output_values;
  }
  const Output rows = EmbeddingLookupSparse(params, {filled.output_indices, filled.output_values},
                                            {.combiner = options.combiner,
                                             .weights = entries.weights,
                                             .partition_strategy = options.partition_strategy,
                                             .max_norm = options.max_norm});
  if (options.default_id >= 0 || !rows.exists()) return rows;
  std::vector<int64_t> column(std::max(rows.shape().rank(), 1), 1);
  column[0] = -1;
  const Output empty = Reshape(filled.empty_row_indicator, Const(column));
  return SelectV2(empty, Const(0, {.dtype = rows.dtype()}), rows);
}

}  // namespace tenon
