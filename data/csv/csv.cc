// SPDX-License-Identifier: Apache-2.0
#include "data/csv/csv.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "core/base/strings.h"

namespace tenon {
namespace {

/// How much of a field a message shows.
constexpr size_t kShownBytes = 40;

bool IsCsvLineEnd(char c) { return c == '\n' || c == '\r'; }

}  // namespace

void Unquote(std::string_view within_quotes, std::string* text) {
  text->clear();
  for (size_t i = 0; i < within_quotes.size(); ++i) {
    text->push_back(within_quotes[i]);
    if (within_quotes[i] == '"') ++i;
  }
}

std::string ShownField(std::string_view field) {
  return StrCat("'", absl::Utf8SafeCEscape(ToAbsl(field.substr(0, kShownBytes))),
                field.size() > kShownBytes ? "..." : "", "'");
}

bool CsvFormat::Wants(int64_t column, size_t before) const {
  if (columns.empty()) {
    return excluded.empty() || !std::binary_search(excluded.begin(), excluded.end(), column);
  }
  return before < columns.size() && columns[before] == column;
}

bool CsvFormat::EndsWithinQuotes(std::string_view line, bool within) const {
  if (!quotes || line.find('"') == std::string_view::npos) return within;
  size_t at = 0;
  while (true) {
    if (!within) {  // at the beginning of a field
      while (at < line.size() && IsCsvLineEnd(line[at])) ++at;
      if (at == line.size()) return false;
      if (line[at] != '"') {
        at = std::min(line.find(delimiter, at), line.size());
        if (at++ == line.size()) return false;
        continue;
      }
      ++at;
    }
    at = line.find('"', at);
    if (at == std::string_view::npos) return true;
    const bool last = ++at == line.size();
    within = !last && line[at] == '"';  // two stand for one
    if (last || (!within && line[at] != delimiter)) return false;
    ++at;
  }
}

CsvLine::CsvLine(const CsvFormat& format) : format_(format), unquoted_(format.wanted) {
  const auto end_at = [this](char c) { ends_plain_[static_cast<unsigned char>(c)] = true; };
  end_at(format.delimiter);
  end_at('\n');
  end_at('\r');
  if (format.quotes) end_at('"');
}

CsvMistake CsvLine::Cut(std::string_view line, std::vector<std::string_view>* fields) {
  fields->clear();
  column_ = 0;
  num_wanted_ = 0;
  // Fields beyond the wanted ones are counted and not held.
  const auto add = [&](std::string_view field) {
    if (num_wanted_++ < format_.wanted) fields->push_back(field);
  };
  size_t at = 0;
  while (at < line.size()) {
    if (IsCsvLineEnd(line[at])) {
      ++at;
      continue;
    }
    const bool keep = format_.Wants(column_++, fields->size());
    std::string_view field;
    CsvMistake mistake;
    if (format_.quotes && line[at] == '"') {
      std::string* const unquoted =
          keep && fields->size() < unquoted_.size() ? &unquoted_[fields->size()] : &dropped_;
      mistake = TakeQuoted(line, &at, unquoted, &field);
    } else {
      mistake = TakePlain(line, &at, &field);
    }
    if (mistake != CsvMistake::kNone) return mistake;
    if (!keep) continue;
    add(field);
    if (!format_.count_all && !format_.columns.empty() &&
        fields->size() == format_.columns.size()) {
      return CsvMistake::kNone;
    }
  }
  if (!line.empty() && line.back() == format_.delimiter &&
      format_.Wants(column_++, fields->size())) {
    add({});
  }
  return num_wanted_ <= format_.wanted ? CsvMistake::kNone : CsvMistake::kTooManyFields;
}

CsvMistake CsvLine::TakePlain(std::string_view line, size_t* at, std::string_view* field) const {
  const size_t begin = *at;
  size_t end = begin;
  while (end < line.size() && !ends_plain_[static_cast<unsigned char>(line[end])]) ++end;
  *at = end + 1;
  if (end < line.size() && line[end] != format_.delimiter) return CsvMistake::kQuoteInPlainField;
  *field = line.substr(begin, end - begin);
  return CsvMistake::kNone;
}

/// A field in quotes ends with a quote before a delimiter or the end; any other quote inside is
/// doubled. `unquoted` takes the text of one that has such.
CsvMistake CsvLine::TakeQuoted(std::string_view line, size_t* at, std::string* unquoted,
                               std::string_view* field) const {
  const size_t begin = ++*at;
  const auto ends = [&](size_t i) {
    return i + 1 == line.size() || line[i + 1] == format_.delimiter;
  };
  bool doubled = false;
  for (;; ++*at) {
    *at = line.find('"', *at);
    if (*at == std::string_view::npos) return CsvMistake::kUnclosedQuotes;
    if (ends(*at)) break;
    if (line[++*at] != '"') return CsvMistake::kSingleQuoteInQuotes;
    doubled = true;
  }
  *field = line.substr(begin, *at - begin);
  *at += 2;
  if (!doubled) return CsvMistake::kNone;
  Unquote(*field, unquoted);
  *field = *unquoted;
  return CsvMistake::kNone;
}

}  // namespace tenon
