// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/sorted_rows.h"

#include <bit>

#include "ops/cuda/check.cuh"
#include "ops/cuda/group_rows.h"
#include "ops/cuda/launch.cuh"

namespace tenon::cuda {
namespace {

/// Indices that are rows themselves, as TupleRows has tuples.
struct IndexRows {
  IndexReader indices;
  int64_t limit;
  __device__ int64_t Row(int64_t i, int64_t* bad) const {
    const int64_t row = indices[i];
    if (row >= 0 && row < limit) return row;
    *bad = row;
    return -1;
  }
};

template <typename Rows>
struct WriteKey {
  Rows rows;
  uint64_t limit;
  uint64_t* keys;
  __device__ void operator()(int64_t i) const {
    int64_t bad;
    const int64_t row = rows.Row(i, &bad);
    keys[i] = row >= 0 ? static_cast<uint64_t>(row) : limit;
  }
};

/// One thread notes the first place that has no row.
template <typename Rows>
struct NoteFirst {
  Rows rows;
  RowSpan span;
  RunCheck check;
  __device__ void operator()(int64_t) const {
    const int64_t k = LowerBound(span.rows, span.count, span.limit);
    if (k == span.count) return;
    int64_t bad = 0;
    rows.Row(span.places[k], &bad);
    NoteIndex(check, span.places[k], bad);
  }
};

template <typename Rows>
StatusOr<SortedRows> Sort(KernelContext& ctx, const Rows& rows, int64_t count, int64_t limit,
                          RunCheck check) {
  SortedRows sorted;
  sorted.span.count = count;
  sorted.span.limit = static_cast<uint64_t>(limit);
  if (count == 0) return sorted;
  TENON_ASSIGN_OR_RETURN(Tensor keys, ctx.AllocateTemp(DType::kUInt64, {count}));
  TENON_RETURN_IF_ERROR(
      ForEach(ctx, count, WriteKey<Rows>{rows, sorted.span.limit, keys.data<uint64_t>()}));
  const int bits = std::max(1, static_cast<int>(std::bit_width(sorted.span.limit)));
  TENON_ASSIGN_OR_RETURN(SortedPairs pairs, SortKeys(ctx, keys, bits));
  sorted.rows = std::move(pairs.keys);
  sorted.places = std::move(pairs.values);
  sorted.span.rows = sorted.rows.data<uint64_t>();
  sorted.span.places = sorted.places.data<uint32_t>();
  TENON_RETURN_IF_ERROR(ForEach(ctx, 1, NoteFirst<Rows>{rows, sorted.span, check}));
  return sorted;
}

}  // namespace

StatusOr<SortedRows> SortRows(KernelContext& ctx, const Tensor& indices, int64_t limit,
                              RunCheck check) {
  return Sort(ctx, IndexRows{IndexReader(indices), limit}, indices.num_elements(), limit, check);
}

StatusOr<SortedRows> SortTuples(KernelContext& ctx, const TupleRows& tuples, int64_t count,
                                int64_t limit, RunCheck check) {
  return Sort(ctx, tuples, count, limit, check);
}

}  // namespace tenon::cuda
