// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/status.h"
#include "data/batch/batch.h"

// Sources made of others: the stages of an input pipeline. Each takes its input over, and reads of
// it what it is asked for and little more.

namespace tenon {

using BatchSourcePtr = std::unique_ptr<BatchSource>;

/// The numbers from 0 to `count` - 1, a column of int64: of rows in memory, which are gathered
/// (GatherRows) behind the stages that put them in order. REQUIRES: count >= 0.
BatchSourcePtr NumberRows(int64_t count);

/// The first `count` rows. REQUIRES: count >= 0.
BatchSourcePtr TakeRows(BatchSourcePtr from, int64_t count);
/// The rows after the first `count` ones. REQUIRES: count >= 0.
BatchSourcePtr SkipRows(BatchSourcePtr from, int64_t count);
/// Every `count`-th row, from row `index` on. REQUIRES: 0 <= index < count.
BatchSourcePtr ShardRows(BatchSourcePtr from, int64_t count, int64_t index);

/// All rows of what `open` gives, so many times, for ever when `count` is -1; the repetition's
/// number is given to `open`. Ends after a repetition without rows. `first` is repetition 0, which
/// was opened already.
BatchSourcePtr RepeatRows(BatchSourcePtr first,
                          std::function<StatusOr<BatchSourcePtr>(int64_t repetition)> open,
                          int64_t count);

/// Random order: the next row is one of `buffer_size` that are held, with equal chances; with as
/// many as there are rows, all orders are equally likely. The order follows from the two numbers.
/// REQUIRES: buffer_size >= 1.
BatchSourcePtr ShuffleRows(BatchSourcePtr from, int64_t buffer_size, uint64_t seed,
                           uint64_t repetition);

/// Batches of `size` rows whenever at least so many are asked for; the last one may have fewer,
/// unless `drop_remainder` leaves it out. Rows of a batch that an error cuts short are lost.
/// InvalidArgument when rows of a batch are not alike.
/// REQUIRES: size >= 1.
BatchSourcePtr RebatchRows(BatchSourcePtr from, int64_t size, bool drop_remainder);

/// Reads up to `count` rows ahead, on a thread that ends with the source. REQUIRES: count >= 1.
BatchSourcePtr PrefetchRows(BatchSourcePtr from, int64_t count);

}  // namespace tenon
