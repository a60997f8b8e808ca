// SPDX-License-Identifier: Apache-2.0
#include "data/table/table_part.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>

#include "data/csv/read_number.h"

namespace tenon {
namespace {

/// The bytes of text that are cut, and then read column by column.
constexpr size_t kCutBytes = 256 << 10;
constexpr double kMissingNumber = std::numeric_limits<double>::quiet_NaN();
/// Powers of ten that are doubles.
constexpr double kTens[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                            1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

/// A number of at most 15 digits, with a point perhaps, which is exact (Clinger 1990, "How to read
/// floating point numbers accurately"): false for others, and for what is no number.
bool ReadShortNumber(std::string_view text, double* value, bool* leading_zero) {
  const char* p = text.data();
  const char* const end = p + text.size();
  const bool negative = p != end && *p == '-';
  p += negative ? 1 : 0;
  if (end - p > 16 || p == end) return false;
  const char* const first = p;
  uint64_t digits = 0;
  const auto digit = [&] { return static_cast<unsigned>(*p - '0'); };
  for (; p != end && digit() < 10; ++p) digits = 10 * digits + digit();
  const auto whole = p - first;
  if (whole > 1 && *first == '0') *leading_zero = true;
  std::ptrdiff_t decimals = 0;
  if (p != end && *p == '.') {
    const char* const point = p++;
    for (; p != end && digit() < 10; ++p) digits = 10 * digits + digit();
    decimals = p - point - 1;
  }
  if (p != end || whole + decimals == 0 || whole + decimals > 15) return false;
  const double magnitude = static_cast<double>(digits) / kTens[decimals];
  *value = negative ? -magnitude : magnitude;
  return true;
}

/// Whether a number, perhaps with white space and a sign before it, begins with a zero that says
/// nothing of its value.
bool HasLeadingZero(std::string_view number) {
  const size_t first = number.find_first_not_of(" \t\n\v\f\r+-");
  return first + 1 < number.size() && number[first] == '0' &&
         static_cast<unsigned>(number[first + 1] - '0') < 10;
}

/// Reads a column, some records at a time.
class ColumnReader {
 public:
  ColumnReader(const WantedColumn& column, const TableFormat& format, ColumnPart* part)
      : column_(column.place), format_(&format), part_(part) {
    part_->is_text = column.as_text;
  }

  /// Takes memory for so many rows when the first one comes.
  void Expect(size_t rows) { expected_rows_ = rows; }
  /// Appends the records.
  void Append(const RecordCutter& records) {
    if (begins_anew_) return;
    if (!part_->is_text) {
      const bool is_first = part_->numbers.empty();
      if (AppendNumbers(records)) return;
      part_->is_text = true;
      part_->numbers = {};
      part_->num_missing = 0;
      begins_anew_ = !is_first;
    }
    if (!begins_anew_) AppendTexts(records);
  }
  /// Appends the records to a column of texts.
  void AppendTexts(const RecordCutter& records) {
    if (part_->codes.empty()) part_->codes.reserve(expected_rows_);
    for (int64_t i = 0; i < records.num_records(); ++i) {
      const std::string_view text =
          FieldText(records.Field(i, column_), format_->quotes, &unquoted_);
      const bool missing = IsMissing(text, *format_);
      part_->codes.push_back(missing ? -1 : part_->levels.Code(text));
      part_->num_missing += missing ? 1 : 0;
    }
  }
  /// Whether the column has turned out to be text behind records that were read as numbers: all of
  /// them are to be appended as texts.
  bool begins_anew() const { return begins_anew_; }

 private:
  /// False at the first value that is no number.
  bool AppendNumbers(const RecordCutter& records) {
    const int64_t rows = records.num_records();
    const size_t before = part_->numbers.size();
    if (before == 0) part_->numbers.reserve(expected_rows_);
    part_->numbers.resize(before + static_cast<size_t>(rows));
    double* value = part_->numbers.data() + before;
    for (int64_t i = 0; i < rows; ++i, ++value) {
      const std::string_view field = records.Field(i, column_);
      if (ReadShortNumber(field, value, &part_->has_leading_zeros)) continue;
      const std::string_view text = FieldText(field, format_->quotes, &unquoted_);
      if (IsMissing(text, *format_)) {
        *value = kMissingNumber;
      } else if (ReadFieldNumber(text, value)) {
        part_->has_leading_zeros |= HasLeadingZero(text);
      } else {
        return false;
      }
      part_->num_missing += std::isnan(*value) ? 1 : 0;
    }
    return true;
  }

  int64_t column_;
  const TableFormat* format_;
  ColumnPart* part_;
  size_t expected_rows_ = 0;
  bool begins_anew_ = false;
  std::string unquoted_;
};

}  // namespace

TablePart ReadTablePart(std::string_view text, const TableFormat& format, int64_t num_columns,
                        absl::Span<const WantedColumn> wanted) {
  TablePart part;
  part.columns.resize(wanted.size());
  std::vector<ColumnReader> readers;
  for (size_t c = 0; c < wanted.size(); ++c) {
    readers.emplace_back(wanted[c], format, &part.columns[c]);
  }
  RecordCutter records(text, format, num_columns);
  while (records.Next(kCutBytes, &part.bad)) {
    if (part.num_rows == 0) {
      const size_t chunks = text.size() / kCutBytes + 1;
      for (ColumnReader& reader : readers) reader.Expect(chunks * records.num_records());
    }
    part.num_rows += records.num_records();
    for (ColumnReader& reader : readers) reader.Append(records);
  }
  const auto begins_anew = [](const ColumnReader& reader) { return reader.begins_anew(); };
  if (std::none_of(readers.begin(), readers.end(), begins_anew)) return part;
  std::erase_if(readers, std::not_fn(begins_anew));
  std::vector<BadRecord> known;
  RecordCutter from_the_beginning(text, format, num_columns);
  while (from_the_beginning.Next(kCutBytes, &known)) {
    for (ColumnReader& reader : readers) reader.AppendTexts(from_the_beginning);
  }
  return part;
}

}  // namespace tenon
