// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/kernel.h"

namespace tenon::cuda {

/// Pairs of a key and a number, sorted by their keys; equals stay in their order.
struct SortedPairs {
  Tensor keys;    // uint64
  Tensor values;  // uint32
};

/// Queues the sorting of keys of `bits` bits, which `keys` (uint64, device memory) holds, with the
/// numbers 0, 1, ... Unimplemented for more than 2^31 - 1 of them.
StatusOr<SortedPairs> SortKeys(KernelContext& ctx, const Tensor& keys, int bits);

/// Which rows of a tensor belong to which segment, in device memory: to segment s the rows
/// rows[starts[s]] .. rows[starts[s + 1] - 1], in their order.
struct GroupedRows {
  Tensor rows;    // uint32
  Tensor starts;  // int64, one more than segments
};

/// Queues the grouping of rows, of which row i belongs to segment keys[i] (uint64), and to none
/// when that is `segments`. As SortKeys.
StatusOr<GroupedRows> GroupRows(KernelContext& ctx, const Tensor& keys, int64_t segments);

}  // namespace tenon::cuda
