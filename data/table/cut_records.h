// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/csv/csv.h"
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

/// The records of a text and their fields, all with the same number of fields, some at a time: what
/// is looked at again is still in the processor's cache then. Used by one thread at a time.
class RecordCutter {
 public:
  static constexpr size_t kLongestField = size_t{1} << 20;

  /// `text` begins with a record and, unless it is the end of a file, ends with the end of one; it
  /// has less than 4 GiB. It and `format` must outlive this.
  RecordCutter(std::string_view text, const TableFormat& format, int64_t num_columns);

  /// Takes the next records, of `bytes` or a little more, in the place of those before; false at
  /// the end. Bad ones are left out, and added to `bad`.
  bool Next(size_t bytes, std::vector<BadRecord>* bad);

  std::string_view text() const { return text_; }
  /// Where in the text the next record begins.
  size_t next() const { return record_; }
  int64_t num_records() const { return static_cast<int64_t>(begins_.size()); }
  /// A field as it stands there, with its quotes.
  std::string_view Field(int64_t record, int64_t column) const {
    const size_t at = static_cast<size_t>(record * num_columns_ + column);
    const size_t begin = column == 0 ? begins_[record] : ends_[at - 1] + 1;
    return {text_.data() + begin, ends_[at] - begin};
  }
  /// A record as it stands there, without the end of its line.
  std::string_view Record(int64_t record) const {
    const size_t begin = begins_[record];
    const size_t end = ends_[static_cast<size_t>((record + 1) * num_columns_ - 1)];
    return {text_.data() + begin, end - begin};
  }
  /// Where in the text the record begins.
  size_t begin(int64_t record) const { return begins_[record]; }

 private:
  /// Cuts the block of bytes from `at` on, unless the records end at `stop` before; gives the place
  /// to go on at.
  size_t CutBlock(size_t block, size_t at, size_t stop, std::vector<BadRecord>* bad);
  void EndRecord(size_t line_end, size_t next, std::vector<BadRecord>* bad);
  void Found(BadRecord::Kind kind);
  void CheckQuoted(size_t open, size_t end);
  /// Looks whether a field of the record, the first of which is `first` of `ends_`, is too long.
  void CheckLengths(size_t first);

  const std::string_view text_;
  const TableFormat& format_;
  const int64_t num_columns_;
  size_t record_ = 0, field_ = 0;  // where those that are being read begin
  std::vector<uint32_t> begins_;   // of records
  std::vector<uint32_t> ends_;     // of fields, with room for more
  size_t num_ends_ = 0;
  std::optional<BadRecord> mistake_;  // of the record
};

/// The text of a field: without its quotes, and with one quote for two, in `unquoted` then.
inline std::string_view FieldText(std::string_view field, bool quotes, std::string* unquoted) {
  if (!quotes || field.empty() || field.front() != '"') return field;
  field = field.substr(1, field.size() - 2);
  if (field.find('"') == std::string_view::npos) return field;
  Unquote(field, unquoted);
  return *unquoted;
}

}  // namespace tenon
