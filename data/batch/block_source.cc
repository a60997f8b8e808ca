// SPDX-License-Identifier: Apache-2.0
#include "data/batch/block_source.h"

#include <algorithm>

#include "core/base/exceptions.h"
#include "core/base/mutex.h"
#include "core/base/parallel.h"

namespace tenon {

StatusOr<bool> BlockSource::Next(int64_t most, RowBatch* batch) {
  while (next_row_ == block_.num_rows()) {
    TENON_RETURN_IF_ERROR(mistake_);
    block_ = {schema_, {}};
    next_row_ = 0;
    const StatusOr<bool> found = CatchExceptions([&] { return ReadBlock(&block_); });
    if (!found.ok()) mistake_ = found.status();
    if (found.ok() && !*found) return false;
  }
  const int64_t end = next_row_ + std::min(most, block_.num_rows() - next_row_);
  *batch = block_.Slice(next_row_, end);
  next_row_ = end;
  if (end == block_.num_rows()) {
    block_.columns.clear();
    next_row_ = 0;
  }
  return true;
}

Status ConvertRows(int64_t rows, double cost, const std::function<ConvertRow()>& make,
                   int64_t* good) {
  Mutex mu;
  Status mistake;
  *good = rows;
  ParallelFor(rows, cost, [&](int64_t begin, int64_t end) {
    const ConvertRow convert = make();
    for (int64_t row = begin; row < end; ++row) {
      Status status = CatchExceptions([&] { return convert(row); });
      if (status.ok()) continue;
      MutexLock lock(mu);
      if (row < *good) {
        *good = row;
        mistake = std::move(status);
      }
      return;
    }
  });
  return mistake;
}

}  // namespace tenon
