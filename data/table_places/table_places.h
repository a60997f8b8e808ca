// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "data/table/settle_table.h"
#include "data/table/table_files.h"
#include "data/table/unit_reader.h"
#include "data/table/unit_report.h"

namespace tenon {

/// The words for what is wrong in a table and where: "part-07.csv:18,204: column 10 (temp): 'warm'
/// is not a number", and the record below. Any thread.
class TablePlaces {
 public:
  /// `first_lines` are those of the settlement. All must outlive this.
  TablePlaces(const std::vector<TableFile>& files, const TableSchema& schema,
              const std::vector<TableUnit>& units, const std::vector<int64_t>& first_lines)
      : files_(files), schema_(schema), units_(units), first_lines_(first_lines) {}

  /// The line of its file, from 1 on, that is `line` lines behind the beginning of the unit.
  int64_t Line(int64_t unit, int64_t line) const { return first_lines_[unit] + line; }
  /// The byte of its file, decompressed, that is `byte` bytes behind the beginning of the unit.
  int64_t Byte(int64_t unit, int64_t byte) const { return units_[unit].begin + byte; }
  /// The file of a unit, as messages name it.
  std::string File(int64_t unit) const;
  const TableSchema& schema() const { return schema_; }

  /// A value in a column of the schema, with what it is not: "is not a number".
  std::string OfValue(int64_t unit, int64_t column, const PlacedText& value,
                      std::string_view mistake) const;
  /// A column that is doubtful, with the first of its values that are no numbers, which are of its
  /// unit, and the flags that settle it.
  std::string OfDoubtful(const DoubtfulColumn& column, absl::Span<const PlacedText> texts) const;
  std::string OfRejected(int64_t unit, const RejectedRecord& rejected) const;

 private:
  /// "file:line: ".
  std::string At(int64_t unit, int64_t line) const;
  /// "column 3 (name)", of the place in a record, from 0 on.
  std::string Column(int64_t place) const;
  std::string Mistake(const RejectedRecord& rejected) const;

  const std::vector<TableFile>& files_;
  const TableSchema& schema_;
  const std::vector<TableUnit>& units_;
  const std::vector<int64_t>& first_lines_;
};

/// OK while the units have rejected at most `most` records together; else InvalidArgument with the
/// first ones and the flags that help. `reports` are on all units.
Status CheckRejects(const TablePlaces& places, absl::Span<const UnitReport* const> reports,
                    int64_t most);

}  // namespace tenon
