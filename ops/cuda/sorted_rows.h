// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cuda/tuple_rows.h"

namespace tenon::cuda {

/// The first of `count` ascending rows that is `row` or more; `count` when there is none.
TENON_HD inline int64_t LowerBound(const uint64_t* rows, int64_t count, uint64_t row) {
  int64_t first = 0;
  while (count > 0) {
    const int64_t half = count / 2;
    if (rows[first + half] < row) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}

/// Rows of a variable in ascending order, in the device's memory, and for each the place in the
/// op's indices where it stood. Equal rows keep the order of their places, so that whoever goes
/// over them makes changes in the order of the CPU. What is no row is `limit`, and comes last.
struct RowSpan {
  const uint64_t* rows = nullptr;
  const uint32_t* places = nullptr;
  int64_t count = 0;
  uint64_t limit = 0;

  /// The row that entry `k` stands for: it is one, and the first of its equals. Else -1.
  TENON_HD int64_t FirstOfRow(int64_t k) const {
    const uint64_t row = rows[k];
    return row >= limit || (k > 0 && rows[k - 1] == row) ? -1 : static_cast<int64_t>(row);
  }
  /// Where the entries end that are equal to entry `k`.
  TENON_HD int64_t EndOfRow(int64_t k) const {
    return k + LowerBound(rows + k, count - k, rows[k] + 1);
  }
};

/// Such rows and the memory that they are in.
struct SortedRows {
  RowSpan span = {};
  Tensor rows = {}, places = {};
};

/// Indices of rows of a tensor that has `limit` of them. The first that is no row is noted in
/// `check` (see NotedIndex). As SortKeys.
StatusOr<SortedRows> SortRows(KernelContext& ctx, const Tensor& indices, int64_t limit,
                              RunCheck check);
/// The same of `count` tuples that name some of `limit` rows.
StatusOr<SortedRows> SortTuples(KernelContext& ctx, const TupleRows& tuples, int64_t count,
                                int64_t limit, RunCheck check);

}  // namespace tenon::cuda
