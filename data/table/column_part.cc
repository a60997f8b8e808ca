// SPDX-License-Identifier: Apache-2.0
#include "data/table/column_part.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "data/csv/read_number.h"

namespace tenon {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
/// Powers of ten that are doubles.
constexpr double kTens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                            1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

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

class ColumnReader {
 public:
  ColumnReader(const CutRecords& records, int64_t column, const TableFormat& format)
      : records_(records), column_(column), format_(format) {}

  /// False at the first value that is no number.
  bool ReadNumbers(ColumnPart* part) {
    const int64_t rows = records_.num_records();
    part->numbers.resize(rows);
    for (int64_t i = 0; i < rows; ++i) {
      double* const value = &part->numbers[i];
      const std::string_view field = records_.Field(i, column_);
      if (ReadShortNumber(field, value, &part->has_leading_zeros)) continue;
      const std::string_view text = FieldText(field, format_.quotes, &unquoted_);
      if (IsMissing(text)) {
        *value = kMissing;
        ++part->num_missing;
      } else if (!ReadFieldNumber(text, value)) {
        return false;
      } else {
        part->num_missing += std::isnan(*value) ? 1 : 0;
      }
    }
    return true;
  }

  void ReadTexts(ColumnPart* part) {
    const int64_t rows = records_.num_records();
    part->codes.resize(rows);
    for (int64_t i = 0; i < rows; ++i) {
      const std::string_view text =
          FieldText(records_.Field(i, column_), format_.quotes, &unquoted_);
      if (IsMissing(text)) {
        part->codes[i] = -1;
        ++part->num_missing;
      } else {
        part->codes[i] = part->levels.Code(text);
      }
    }
  }

 private:
  bool IsMissing(std::string_view text) const {
    return text.empty() ||
           std::find(format_.missing.begin(), format_.missing.end(), text) != format_.missing.end();
  }

  const CutRecords& records_;
  const int64_t column_;
  const TableFormat& format_;
  std::string unquoted_;
};

}  // namespace

ColumnPart ReadColumn(const CutRecords& records, int64_t column, const TableFormat& format,
                      bool as_text) {
  ColumnPart part;
  ColumnReader reader(records, column, format);
  part.is_text = as_text || !reader.ReadNumbers(&part);
  if (part.is_text) {
    part.numbers = {};
    part.num_missing = 0;
    reader.ReadTexts(&part);
  }
  return part;
}

}  // namespace tenon
