// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/status.h"
#include "data/batch/batch.h"

namespace tenon {

/// The base of sources that read many rows at once: it gives them out in the batches that are
/// asked for, and keeps the first error.
class BlockSource : public BatchSource {
 public:
  explicit BlockSource(RowSchema schema)
      : schema_(std::make_shared<const RowSchema>(std::move(schema))) {}
  const std::shared_ptr<const RowSchema>& schema() const final { return schema_; }
  StatusOr<bool> Next(int64_t most, RowBatch* batch) final;

 private:
  /// Makes `block`, which is empty, the next rows; false at the end. With an error, the rows that
  /// come before it; there is no other call then. May throw.
  virtual StatusOr<bool> ReadBlock(RowBatch* block) = 0;

  const std::shared_ptr<const RowSchema> schema_;
  RowBatch block_;
  int64_t next_row_ = 0;  // of the block
  Status mistake_;
};

/// Converts the text of one row.
using ConvertRow = std::function<Status(int64_t row)>;

/// Converts rows [0, rows) on several threads, each with a function that `make` has made. Gives the
/// error of the first row that has one, and in `good` how many come before it. `cost`: ns a row.
Status ConvertRows(int64_t rows, double cost, const std::function<ConvertRow()>& make,
                   int64_t* good);

}  // namespace tenon
