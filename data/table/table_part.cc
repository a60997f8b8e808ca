// SPDX-License-Identifier: Apache-2.0
#include "data/table/table_part.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string_view>

#include "data/csv/read_number.h"

namespace tenon {
namespace {

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

constexpr int kTinyBytes = 8;
constexpr uint64_t kOnes = 0x0101010101010101, kHighBits = 0x80 * kOnes;
constexpr uint64_t kZeros = '0' * kOnes, kPoints = '.' * kOnes;

/// A number of at most 8 bytes behind its sign, as ReadShortNumber reads it; they are looked at all
/// at once, so that no step depends on how many there are. REQUIRES: 8 bytes before `end` can be
/// read.
bool ReadTinyNumber(const char* begin, const char* end, double* value, bool* leading_zero) {
  if (begin == end) return false;
  const bool negative = *begin == '-';
  begin += negative ? 1 : 0;
  const auto size = static_cast<unsigned>(end - begin);
  if (size - 1 >= kTinyBytes) return false;
  uint64_t bytes;  // the last one in the highest bits
  std::memcpy(&bytes, end - kTinyBytes, kTinyBytes);
  const uint64_t own = ~uint64_t{0} << (8 * (kTinyBytes - size));
  bytes = (bytes & own) | (kZeros & ~own);
  const uint64_t unlike = bytes ^ kPoints;
  const uint64_t points = (unlike - kOnes) & ~unlike & kHighBits;
  unsigned digits = size, decimals = 0;
  if (points != 0) {
    const int at = std::countr_zero(points) / 8 * 8;  // of the first one
    const uint64_t below = (uint64_t{1} << at) - 1, above = ~below << 7 << 1;
    bytes = (bytes & above) | (bytes & below) << 8 | '0';
    decimals = static_cast<unsigned>(kTinyBytes - 1 - at / 8);
    --digits;
  }
  const uint64_t others = (bytes + 0x46 * kOnes) | (bytes - kZeros);
  if ((others & kHighBits) != 0 || digits == 0) return false;
  if (digits - decimals > 1 && *begin == '0') *leading_zero = true;
  // Neighbours are joined to numbers of two digits, of four, and of eight.
  uint64_t number = bytes - kZeros;
  number = 10 * number + (number >> 8);
  constexpr uint64_t kPairs = 0x000000ff000000ff;
  constexpr uint64_t kMillion = 1000000, kTenThousand = 10000;
  number = (number & kPairs) * (100 + (kMillion << 32)) +
           (number >> 16 & kPairs) * (1 + (kTenThousand << 32));
  auto magnitude = static_cast<double>(number >> 32);
  if (decimals != 0) magnitude /= kTens[decimals];
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
    part_->is_text |= column.as_text;
    part_->has_leading_zeros = false;
    part_->num_missing = 0;
    part_->numbers.clear();
    part_->codes.clear();
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
    const char* const from = records.text().data() + kTinyBytes;
    for (int64_t i = 0; i < rows; ++i, ++value) {
      const std::string_view field = records.Field(i, column_);
      const char* const end = field.data() + field.size();
      if (end >= from && ReadTinyNumber(field.data(), end, value, &part_->has_leading_zeros)) {
        continue;
      }
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

bool ReadTablePart(RecordCutter* records, size_t bytes, const TableFormat& format,
                   int64_t num_columns, absl::Span<const WantedColumn> wanted, TablePart* part) {
  const size_t begin = records->next(), size = records->text().size() - begin;
  if (size == 0) return false;
  part->num_rows = 0;
  part->bad.clear();
  part->columns.resize(wanted.size());
  std::vector<ColumnReader> readers;
  for (size_t c = 0; c < wanted.size(); ++c) {
    readers.emplace_back(wanted[c], format, &part->columns[c]);
  }
  size_t next = begin;
  while (next - begin < bytes && records->Next(std::min(bytes, kCutBytes), &part->bad)) {
    if (next == begin) {
      const auto rows = static_cast<size_t>(records->num_records());
      const size_t chunks = std::min(size, bytes) / kCutBytes + 1;
      for (ColumnReader& reader : readers) reader.Expect(chunks * rows);
    }
    next = records->next();
    part->num_rows += records->num_records();
    for (ColumnReader& reader : readers) reader.Append(*records);
  }
  const auto begins_anew = [](const ColumnReader& reader) { return reader.begins_anew(); };
  if (std::none_of(readers.begin(), readers.end(), begins_anew)) return true;
  std::erase_if(readers, std::not_fn(begins_anew));
  std::vector<BadRecord> known;
  RecordCutter again(records->text().substr(begin, next - begin), format, num_columns);
  while (again.Next(kCutBytes, &known)) {
    for (ColumnReader& reader : readers) reader.AppendTexts(again);
  }
  return true;
}

TablePart ReadTablePart(std::string_view text, const TableFormat& format, int64_t num_columns,
                        absl::Span<const WantedColumn> wanted) {
  TablePart part;
  part.columns.resize(wanted.size());
  RecordCutter records(text, format, num_columns);
  ReadTablePart(&records, text.size(), format, num_columns, wanted, &part);
  return part;
}

}  // namespace tenon
