// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

// Lines of comma-separated values, as RFC 4180 has them.

namespace tenon {

/// How lines are written, and which of their fields are wanted.
struct CsvFormat {
  /// InvalidArgument when `delimiters` is not one character, or the columns are not increasing
  /// numbers, as many as are wanted.
  Status Finish(std::string_view delimiters);
  /// Whether the field number `column` is one of those, of which `before` are known.
  bool Wants(int64_t column, size_t before) const;
  /// Whether `line`, which begins with a field or `within` one in quotes, ends within one, so that
  /// the next line belongs to the record. A mistake in a field in quotes ends the record.
  bool EndsWithinQuotes(std::string_view line, bool within) const;

  std::vector<int64_t> columns;   // those that are wanted; all when empty
  std::vector<int64_t> excluded;  // those that are not, in order; only without columns
  std::string not_there;          // stands for a missing field, as an empty one does
  bool quotes = true;
  /// The error of a quote that is not closed.
  std::string_view unclosed = "Quoted field has to end with quote followed by delim or end";
  size_t wanted = 0;  // how many fields
  char delimiter = ',';
};

/// Cuts lines into their fields.
class CsvLine {
 public:
  /// `format` must outlive it.
  explicit CsvLine(const CsvFormat& format) : format_(format), unquoted_(format.wanted) {}

  /// Gives the fields that are wanted, which stay as long as the line and until the next call.
  /// InvalidArgument for quotes and ends of lines where there may be none, and for more fields than
  /// are wanted, where it names the number of the record.
  Status Cut(std::string_view line, int64_t record, std::vector<std::string_view>* fields);

 private:
  Status TakePlain(std::string_view line, size_t* at, std::string_view* field) const;
  Status TakeQuoted(std::string_view line, size_t* at, std::string* unquoted,
                    std::string_view* field) const;

  const CsvFormat& format_;
  std::vector<std::string> unquoted_;
  std::string dropped_;
};

/// InvalidArgument unless `fallback` is what may stand for a missing field number `number`: one
/// element, or none where the field must be there.
Status CheckCsvDefault(const Tensor& fallback, int64_t number);

/// Makes the fields of record number `record`, of which there must be as many as are wanted,
/// elements `at` of `outs`. InvalidArgument for missing ones without a default, and those that are
/// no value of their dtype.
Status ConvertCsvFields(const std::vector<std::string_view>& fields, const CsvFormat& format,
                        int64_t record, absl::Span<const Tensor> defaults,
                        absl::Span<Tensor* const> outs, int64_t at);

}  // namespace tenon
