// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "data/table/table_shard.h"

namespace tenon {

/// Parses a unit of a shard again. Used by one thread at a time.
class TableShard::ParsedUnit {
 public:
  /// Gives the next rows as the last reading of the unit and the recodings since have made them;
  /// false at the end. FailedPrecondition, naming the file, when it is not what it was: some of its
  /// rows may have been given then.
  StatusOr<bool> Next(TableBlock* block);

 private:
  friend class TableShard;
  ParsedUnit(const TableShard& shard, int64_t unit);
  Status Open(const FileContext& context);
  /// Makes a block of the part; false when it has other values than the unit had.
  bool MakeBlock(TableBlock* block);
  Status Changed(std::string_view how) const;
  Status CheckEnd() const;

  const TableShard& shard_;
  const TableUnit& unit_;
  const UnitRead& read_;
  TableSchema schema_;
  std::unique_ptr<UnitReader> reader_;
  TablePart part_;
  int64_t num_rows_ = 0;
  CountedVector<int64_t> num_missing_;          // by column
  std::vector<CountedVector<int32_t>> codes_;  // by column: of the blocks, by those of the parts
};

}  // namespace tenon
