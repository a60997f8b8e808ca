// SPDX-License-Identifier: Apache-2.0
#include "data/table_places/table_places.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "core/base/strings.h"

namespace tenon {
namespace {

constexpr size_t kShownRecordBytes = 100;
constexpr size_t kShownNameBytes = 40;
constexpr int64_t kShownRejects = 5;

/// "18,204".
std::string WithCommas(int64_t number) {
  std::string text = StrCat(number);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) text.insert(at, 1, ',');
  return text;
}

/// The beginning of a text, in one line.
std::string Shortened(std::string_view text, size_t bytes) {
  return StrCat(absl::Utf8SafeCEscape(ToAbsl(text.substr(0, bytes))),
                text.size() > bytes ? "..." : "");
}

/// The record below a message.
std::string ShownRecord(std::string_view record) {
  return StrCat("\n  ", Shortened(record, kShownRecordBytes));
}

/// A text as an argument of a flag for a shell.
std::string Argument(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::string TablePlaces::File(int64_t unit) const {
  const std::string& path = files_[units_[unit].file].path;
  return path == "-" ? "standard input" : path;
}

std::string TablePlaces::At(int64_t unit, int64_t line) const {
  return StrCat(File(unit), ":", WithCommas(Line(unit, line)), ": ");
}

std::string TablePlaces::Column(int64_t place) const {
  const std::vector<std::string>& names = schema_.header.names;
  const bool has_name = place < static_cast<int64_t>(names.size());
  return StrCat("column ", place + 1,
                has_name ? StrCat(" (", Shortened(names[place], kShownNameBytes), ")") : "");
}

std::string TablePlaces::OfValue(int64_t unit, int64_t column, const PlacedText& value,
                                 std::string_view mistake) const {
  return StrCat(At(unit, value.line), Column(schema_.columns[column].place), ": ",
                ShownField(value.text), " ", mistake, ShownRecord(value.record));
}

std::string TablePlaces::OfDoubtful(const DoubtfulColumn& column,
                                    absl::Span<const PlacedText> texts) const {
  const int64_t place = schema_.columns[column.column].place;
  const std::string name = Shortened(schema_.header.names[place], kShownNameBytes);
  std::string message;
  std::vector<std::string> different;
  for (const PlacedText& text : texts) {
    StrAppend(&message, OfValue(column.unit, column.column, text, "is not a number"), "\n");
    if (std::find(different.begin(), different.end(), text.text) == different.end()) {
      different.push_back(text.text);
    }
  }
  StrAppend(&message, WithCommas(column.num_others), " of its ", WithCommas(column.num_values),
            column.num_others == 1 ? " values is no number" : " values are no numbers");
  // The flag stands in place of what is missing without it.
  std::string missing;
  for (const std::string& text : schema_.format.missing) {
    StrAppend(&missing, " --na ", Argument(text));
  }
  for (const std::string& text : different) StrAppend(&missing, " --na ", Argument(text));
  StrAppend(&message, different.empty() ? "" : StrCat(":", missing, " if they are missing"),
            different.empty() ? ": " : ", ", "--types ", Argument(StrCat(name, "=category")),
            " if the column is one of categories");
  return message;
}

std::string TablePlaces::Mistake(const RejectedRecord& rejected) const {
  const auto wanted = static_cast<int64_t>(schema_.header.names.size());
  const std::string column = Column(std::max<int64_t>(rejected.fields - 1, 0));
  switch (rejected.kind) {
    case BadRecord::Kind::kFields:
      return StrCat("found ", rejected.fields, rejected.fields == 1 ? " field" : " fields",
                    ", wanted ", wanted);
    case BadRecord::Kind::kBehindQuote:
      return StrCat(column, ": found more behind the closing quote, wanted the end of the field");
    case BadRecord::Kind::kOpenQuote:
      return StrCat(column, ": a quote opens and none closes");
    case BadRecord::Kind::kLongField:
      return StrCat(column, ": found a field of more than ",
                    WithCommas(RecordCutter::kLongestField), " bytes");
    case BadRecord::Kind::kNul:
      return StrCat(column, ": found a byte 0, which text has not");
  }
  return "";
}

std::string TablePlaces::OfRejected(int64_t unit, const RejectedRecord& rejected) const {
  return StrCat(At(unit, rejected.line), Mistake(rejected), ShownRecord(rejected.text));
}

Status CheckRejects(const TablePlaces& places, absl::Span<const UnitReport* const> reports,
                    int64_t most) {
  int64_t found = 0, shown = 0;
  std::string first;
  for (size_t u = 0; u < reports.size(); ++u) {
    found += reports[u]->num_rejected;
    for (const RejectedRecord& rejected : reports[u]->rejected) {
      if (shown++ >= kShownRejects) break;
      StrAppend(&first, places.OfRejected(static_cast<int64_t>(u), rejected), "\n");
    }
  }
  if (found <= most) return OkStatus();
  return InvalidArgument(first, found > kShownRejects ? "... " : "", WithCommas(found),
                         found == 1 ? " record is" : " records are",
                         " not as the others, wanted at most ", WithCommas(most),
                         ": --max_rejects leaves out more");
}

}  // namespace tenon
