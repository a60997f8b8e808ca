// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/table/table_format.h"

namespace tenon {

/// A record that is not as the others.
struct BadRecord {
  enum class Kind {
    kFields,       // another number of fields
    kBehindQuote,  // a field goes on behind its closing quote
    kOpenQuote,    // a field in quotes does not end
    kLongField,    // a field of more than kLongestField bytes
    kNul,          // a byte 0, which text has not
  };
  Kind kind;
  size_t begin, end;  // in the text, without the end of its line
  int64_t fields;     // how many it has; else the place of the wrong one, from 1 on
};

/// The records of a text and their fields, all with the same number of fields.
class CutRecords {
 public:
  static constexpr size_t kLongestField = size_t{1} << 20;

  /// Cuts `text`, which begins with a record and, unless it is the end of a file, ends with the end
  /// of one; less than 4 GiB. It must stay. Bad records are left out, and added to `bad`.
  CutRecords(std::string_view text, const TableFormat& format, int64_t num_columns,
             std::vector<BadRecord>* bad);

  int64_t num_records() const { return static_cast<int64_t>(begins_.size()); }
  /// A field as it stands there, with its quotes.
  std::string_view Field(int64_t record, int64_t column) const {
    const size_t at = static_cast<size_t>(record * num_columns_ + column);
    const size_t begin = column == 0 ? begins_[record] : ends_[at - 1] + 1;
    return text_.substr(begin, ends_[at] - begin);
  }
  /// Where the record begins.
  size_t begin(int64_t record) const { return begins_[record]; }

 private:
  const std::string_view text_;
  const int64_t num_columns_;
  std::vector<uint32_t> begins_;  // of records
  std::vector<uint32_t> ends_;    // of fields
};

/// The fields of the first record of a text, as they stand there, and behind it; of any number.
struct FirstRecord {
  std::vector<std::string_view> fields;
  size_t end = 0;  // behind the end of its line
};

/// What a field says: without its quotes, and with one for two; `unquoted` has the text of those.
inline std::string_view FieldText(std::string_view field, bool quotes, std::string* unquoted) {
  if (!quotes || field.empty() || field.front() != '"') return field;
  field = field.substr(1, field.size() - 2);
  if (field.find('"') == std::string_view::npos) return field;
  unquoted->clear();
  for (size_t i = 0; i < field.size(); ++i) {
    unquoted->push_back(field[i]);
    if (field[i] == '"') ++i;
  }
  return *unquoted;
}

}  // namespace tenon
