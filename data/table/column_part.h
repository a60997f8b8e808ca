// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "data/table/cut_records.h"
#include "data/table/table_format.h"
#include "data/table/text_levels.h"

namespace tenon {

/// A column of a part of a table: numbers, as long as all its values are, and otherwise texts.
struct ColumnPart {
  /// Numbers; a missing one is a NaN. Empty for texts.
  std::vector<double> numbers;
  /// The codes of texts in `levels`; a missing one is -1. Empty for numbers.
  std::vector<int32_t> codes;
  TextLevels levels;
  bool is_text = false;
  /// Whether a number is written with zeros before it, as codes are: "007".
  bool has_leading_zeros = false;
  int64_t num_missing = 0;
};

/// Reads a column of `records`. `as_text`: without a look whether its values are numbers.
ColumnPart ReadColumn(const CutRecords& records, int64_t column, const TableFormat& format,
                      bool as_text = false);

}  // namespace tenon
