// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

// Tables in text: UTF-8, a record a line, with fields that a delimiter parts (RFC 4180, and as
// Python's csv reads it). A field whose first character is a quote ends with a quote, holds
// delimiters, ends of lines, and quotes that are doubled. A quote elsewhere is a character like
// others. Lines end with LF or CR LF; empty ones are passed over.

namespace tenon {

/// How a table is written.
struct TableFormat {
  char delimiter = ',';
  bool quotes = true;
  /// The texts that stand for a missing value. The empty one always does.
  std::vector<std::string> missing = {"NA"};
};

inline bool IsMissing(std::string_view text, const TableFormat& format) {
  const auto is_text = [text](const std::string& missing) {
    return missing.size() == text.size() && missing[0] == text[0] && missing == text;
  };
  return text.empty() || std::any_of(format.missing.begin(), format.missing.end(), is_text);
}

}  // namespace tenon
