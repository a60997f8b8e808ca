// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "data/table/cut_records.h"
#include "data/table/table_format.h"
#include "data/table/text_levels.h"

namespace tenon {

/// A column of a part of a table: numbers, where all its values are, and otherwise texts.
struct ColumnPart {
  /// Numbers; a missing one is a NaN. Empty for texts.
  std::vector<double> numbers;
  /// The codes of texts in `levels`; a missing one is -1. Empty for numbers.
  std::vector<int32_t> codes;
  TextLevels levels;
  bool is_text = false;
  /// Whether a number is written with a zero before it, as codes are: "007".
  bool has_leading_zeros = false;
  int64_t num_missing = 0;
};

/// A part of a table: some records of a text.
struct TablePart {
  int64_t num_rows = 0;
  std::vector<ColumnPart> columns;  // those that were wanted
  std::vector<BadRecord> bad;       // left out, in their order
};

/// A column that is read.
struct WantedColumn {
  int64_t place;         // in a record, from 0 on
  bool as_text = false;  // also when all its values are numbers
};

/// The bytes of text that are cut, and then read column by column: after a part of so many or fewer
/// the cutter still has its records.
inline constexpr size_t kCutBytes = 256 << 10;

/// Reads columns of the next records, of `bytes` or a little more; false at the end. `part` is new,
/// or the part before, of which texts keep their codes and columns of texts are such again.
bool ReadTablePart(RecordCutter* records, size_t bytes, const TableFormat& format,
                   int64_t num_columns, absl::Span<const WantedColumn> wanted, TablePart* part);

/// Reads columns of `text`, which is as RecordCutter wants it.
TablePart ReadTablePart(std::string_view text, const TableFormat& format, int64_t num_columns,
                        absl::Span<const WantedColumn> wanted);

}  // namespace tenon
