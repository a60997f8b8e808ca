// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/base/status.h"
#include "data/files/file.h"
#include "data/table/packed_column.h"
#include "data/table/table_files.h"
#include "data/table/table_part.h"
#include "data/table/text_levels.h"
#include "data/table/unit_reader.h"
#include "data/table/unit_report.h"

namespace tenon {

/// Rows of a table, in memory.
struct TableBlock {
  int64_t num_rows = 0;
  std::vector<PackedColumn> columns;  // as in the schema
};

/// The levels of a column of texts, and how many rows have each.
struct ColumnLevels {
  TextLevels levels;
  std::vector<int64_t> counts;  // by code
};

/// The units of a table that one task reads, in memory as far as it may take some: the rows of
/// other units are parsed again whenever they are asked for. Changed by one thread at a time.
class TableShard {
 public:
  /// A unit to read, and how it begins, when that is known.
  struct ReadUnit {
    int64_t unit;  // in `units`
    std::optional<TextState> state;
  };

  /// Nothing is read yet.
  TableShard(std::vector<TableFile> files, TableSchema schema, std::vector<TableUnit> units);

  const TableSchema& schema() const { return schema_; }
  int64_t num_units() const { return static_cast<int64_t>(units_.size()); }

  /// Has the rows in memory take so many bytes at most, those of units that are read from now on.
  void LimitMemory(int64_t bytes) { memory_limit_ = bytes; }
  /// Reads units, several at once, in the place of what was read of them before. After an error
  /// the reports are as they were, and the rows of these units are parsed when they are asked for.
  Status Read(absl::Span<const ReadUnit> units, const FileContext& context = {});
  /// The first values of a column in a unit that are neither numbers nor missing, `most` at most.
  StatusOr<std::vector<PlacedText>> FindTexts(const ReadUnit& unit, int64_t column, size_t most,
                                              const FileContext& context = {}) const;
  /// The value of a column in a row of a unit, and the records that were left out of it, all of
  /// them, of which its report has the first.
  StatusOr<PlacedText> FindRow(const ReadUnit& unit, int64_t column, int64_t row,
                               const FileContext& context = {}) const;
  StatusOr<std::vector<RejectedRecord>> FindRejected(const ReadUnit& unit,
                                                     const FileContext& context = {}) const;
  /// Has columns be texts whatever their values: units that are read from now on.
  void TakeAsText(absl::Span<const int64_t> columns);

  /// FailedPrecondition unless every unit was read, in columns that are of one kind each.
  Status CheckRead() const;
  /// The rows of the units that were read.
  int64_t num_rows() const;
  /// Whether a column is of texts, in the units that have rows.
  bool IsText(int64_t column) const;
  /// Whether that is so of every unit that was read, and the column was not recoded.
  bool HasLevels(int64_t column) const;

  /// Has the codes of a column of texts be places in `texts`, distinct ones, in all units; -1 for
  /// a text that is not among them, which is missing then. REQUIRES: HasLevels.
  void Recode(int64_t column, const std::vector<std::string>& texts);

  /// The report of the last reading of a unit.
  const UnitReport& report(int64_t unit) const { return read_[unit].report; }
  /// Gives the rows of a unit that was read, block by block, as the last reading and the recodings
  /// since have made them, and ends at the first error. FailedPrecondition, naming the file, when
  /// it is not what it was: some of its rows may have been given then. May be called by several
  /// threads at once.
  Status ForEachBlock(int64_t unit, absl::FunctionRef<Status(const TableBlock& block)> give,
                      const FileContext& context = {}) const;
  /// The rows of a unit that was read, parsed again whether they are in memory or not, for a reader
  /// who asks for one block after the other. The shard must outlive it and not be changed.
  class ParsedUnit;
  StatusOr<std::unique_ptr<ParsedUnit>> Parse(int64_t unit, const FileContext& context = {}) const;
  /// Whether the rows of a unit are in memory, and these rows; none when they are not.
  bool is_held(int64_t unit) const { return read_[unit].held; }
  const std::vector<TableBlock>& blocks(int64_t unit) const { return read_[unit].blocks; }
  /// The levels to which the codes of a unit's blocks refer.
  const TextLevels& levels(int64_t unit, int64_t column) const {
    return read_[unit].columns[column].levels;
  }
  /// The levels of all units, in the order in which they come. REQUIRES: HasLevels.
  ColumnLevels LevelsOf(int64_t column) const;
  /// The size of the rows in memory.
  int64_t bytes() const;

 private:
  /// By column: the levels to which the codes of the blocks refer, unless they were recoded, and
  /// the rows with each.
  struct UnitLevels {
    TextLevels levels;
    CountedVector<int64_t> counts;
    bool recoded = false;
  };
  struct UnitRead {
    UnitReport report;
    std::vector<UnitLevels> columns;
    bool held = false;
    std::vector<TableBlock> blocks;  // when they are held
  };
  class UnitColumn;
  class MemoryLeft;

  /// Reads a unit; nothing when a column's parts are of two kinds, which `schema` has as text then.
  StatusOr<std::optional<UnitRead>> ReadOnce(const ReadUnit& unit, TableSchema* schema,
                                             MemoryLeft* memory, const FileContext& context) const;
  StatusOr<UnitRead> ReadOne(const ReadUnit& unit, MemoryLeft* memory,
                             const FileContext& context) const;
  void RecodeUnit(int64_t column, UnitRead* unit) const;

  const std::vector<TableFile> files_;
  TableSchema schema_;
  const std::vector<TableUnit> units_;
  std::vector<UnitRead> read_;      // by unit
  std::vector<TextLevels> places_;  // by column: the texts by which it was recoded
  int64_t memory_limit_ = INT64_MAX;
};

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
  CountedVector<int64_t> num_missing_;         // by column
  std::vector<CountedVector<int32_t>> codes_;  // by column: of the blocks, by those of the parts
};

}  // namespace tenon
