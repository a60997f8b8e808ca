// SPDX-License-Identifier: Apache-2.0
#include "data/table/find_values.h"

#include "data/csv/read_number.h"
#include "data/table/cut_records.h"

namespace tenon {
namespace {

/// The bytes of text that are cut at once.
constexpr size_t kSearchedBytes = 64 << 10;

}  // namespace

std::vector<FoundText> FindTexts(std::string_view text, const TableFormat& format,
                                 int64_t num_columns, int64_t place, size_t most) {
  std::vector<FoundText> found;
  std::vector<BadRecord> bad;
  std::string unquoted;
  double number;
  RecordCutter records(text, format, num_columns);
  while (records.Next(kSearchedBytes, &bad)) {
    for (int64_t r = 0; r < records.num_records(); ++r) {
      const std::string_view value = FieldText(records.Field(r, place), format.quotes, &unquoted);
      if (IsMissing(value, format) || ReadFieldNumber(value, &number)) continue;
      if (found.size() == most) return found;
      found.push_back({records.Record(r), std::string(value)});
    }
  }
  return found;
}

bool FindRow(std::string_view text, const TableFormat& format, int64_t num_columns, int64_t place,
             int64_t* row, FoundText* found) {
  std::vector<BadRecord> bad;
  std::string unquoted;
  RecordCutter records(text, format, num_columns);
  while (records.Next(kSearchedBytes, &bad)) {
    if (*row < records.num_records()) {
      const std::string_view field = records.Field(*row, place);
      *found = {records.Record(*row), std::string(FieldText(field, format.quotes, &unquoted))};
      return true;
    }
    *row -= records.num_records();
  }
  return false;
}

}  // namespace tenon
