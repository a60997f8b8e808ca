// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "data/table/table_shard.h"

namespace tenon {

/// A column of which nearly all values are numbers, so that the others are most likely mistakes.
struct DoubtfulColumn {
  int64_t column;      // in the schema
  int64_t num_values;  // that are not missing
  int64_t num_others;  // that are no numbers
  int64_t unit;        // the first one with such a value
};

/// The findings in the reports on all units of a table.
struct TableSettlement {
  /// The units to read again, once the columns are taken as texts: those that were taken to begin
  /// in a wrong state, and those with numbers in a column that is one of texts. None: the table is
  /// read.
  std::vector<TableShard::ReadUnit> again;
  std::vector<int64_t> as_text;  // columns in the schema
  std::vector<DoubtfulColumn> doubtful;
  /// By unit: the number of the line in its file with which the unit begins, from 1 on.
  std::vector<int64_t> first_lines;
  int64_t num_rows = 0;
  int64_t num_rejected = 0;
};

/// A column is of numbers where all its values in all units are, and none is written with a zero
/// before it; else of texts. One of which less than a thousandth of the values are no numbers is
/// doubtful. `reports` are on all `units`. DataLoss where they cannot be of one table: a file was
/// changed meanwhile.
StatusOr<TableSettlement> SettleTable(const std::vector<TableFile>& files,
                                      const TableSchema& schema,
                                      const std::vector<TableUnit>& units,
                                      absl::Span<const UnitReport* const> reports);

/// Reads all units of a table, which are those of one shard, until nothing is to be read again. The
/// codes of texts are as they were read.
StatusOr<TableSettlement> ReadWholeTable(const std::vector<TableFile>& files,
                                         const std::vector<TableUnit>& units, TableShard* shard,
                                         const FileContext& context = {});

}  // namespace tenon
