// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Lines of comma-separated values, as RFC 4180 has them.

namespace tenon {

/// How lines are written, and which of their fields are wanted.
struct CsvFormat {
  /// Whether the field number `column` is one of those that are wanted, of which `before` come
  /// before it.
  bool Wants(int64_t column, size_t before) const;
  /// Whether `line`, which begins with a field or `within` one in quotes, ends within one, so that
  /// the next line belongs to the record. A mistake in a field in quotes ends the record.
  bool EndsWithinQuotes(std::string_view line, bool within) const;

  std::vector<int64_t> columns;   // the wanted ones, increasing; all when empty
  std::vector<int64_t> excluded;  // the others, increasing; only without columns
  std::string not_there;          // stands for a missing field, as an empty one does
  bool quotes = true;
  /// Fields behind the last wanted one are looked at too, so that they are counted.
  bool count_all = false;
  size_t wanted = 0;  // how many fields
  char delimiter = ',';
};

/// Makes `text` what stands within the quotes of a field, with one quote for two.
void Unquote(std::string_view within_quotes, std::string* text);

/// The beginning of a field, in quotes, for messages.
std::string ShownField(std::string_view field);

/// A mistake in a line.
enum class CsvMistake {
  kNone,
  kQuoteInPlainField,    // or the end of a line
  kSingleQuoteInQuotes,  // neither doubled nor before a delimiter or the end
  kUnclosedQuotes,
  kTooManyFields,  // more than are wanted
};

/// Cuts lines into their fields. Used by one thread at a time.
class CsvLine {
 public:
  /// `format` must outlive it.
  explicit CsvLine(const CsvFormat& format);

  /// Gives the fields that are wanted, which stay as long as the line and until the next call.
  CsvMistake Cut(std::string_view line, std::vector<std::string_view>* fields);
  /// How many fields the last line has, wanted or not; those behind the last wanted one only with
  /// CsvFormat::count_all.
  int64_t num_columns() const { return column_; }
  /// How many of them are wanted, which may be more than CsvFormat::wanted.
  size_t num_wanted() const { return num_wanted_; }

 private:
  CsvMistake TakePlain(std::string_view line, size_t* at, std::string_view* field) const;
  CsvMistake TakeQuoted(std::string_view line, size_t* at, std::string* unquoted,
                        std::string_view* field) const;

  const CsvFormat& format_;
  std::array<bool, 256> ends_plain_ = {};  // the characters that a plain field cannot hold
  std::vector<std::string> unquoted_;
  std::string dropped_;
  int64_t column_ = 0;
  size_t num_wanted_ = 0;
};

}  // namespace tenon
