// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/table/cut_records.h"
#include "data/table/text_scan.h"

namespace tenon {

/// A record that was left out, and where it is.
struct RejectedRecord {
  static constexpr size_t kShownBytes = 4096;
  /// A report has no more of a unit; the others are counted.
  static constexpr size_t kReported = 1000;

  BadRecord::Kind kind;
  int64_t byte;      // from the beginning of the unit, decompressed
  int64_t line;      // ends of lines from the beginning of the unit to it
  int64_t fields;    // as in BadRecord
  std::string text;  // its first kShownBytes bytes
};

/// A value of a unit, and where it is.
struct PlacedText {
  std::string text;
  int64_t line;        // ends of lines from the beginning of the unit to its record
  std::string record;  // its first RejectedRecord::kShownBytes bytes
};

/// The kind and the counts of a column in one unit.
struct ColumnReport {
  bool is_text = false;
  bool has_leading_zeros = false;
  int64_t num_missing = 0;
  /// The rows of a column of texts whose text is a number.
  int64_t num_numbers = 0;
};

/// The account of a unit that its reader gives to whoever looks at the whole table.
struct UnitReport {
  TextState began = TextState::kFieldStart;  // how it was taken to begin
  PartScan scan;                             // of a unit that is not compressed
  int64_t num_rows = 0;
  int64_t num_rejected = 0;
  std::vector<RejectedRecord> rejected;  // the first ones
  std::vector<ColumnReport> columns;     // as in the schema
};

}  // namespace tenon
