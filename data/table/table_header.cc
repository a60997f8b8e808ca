// SPDX-License-Identifier: Apache-2.0
#include "data/table/table_header.h"

#include <algorithm>

#include "core/base/closest_name.h"
#include "core/base/strings.h"
#include "data/csv/csv.h"
#include "data/table/cut_records.h"

namespace tenon {
namespace {

constexpr size_t kHeadBytes = 64 << 10;

/// The first record of a text with records, whose fields `num_fields` counts.
std::string_view FirstRecord(std::string_view text, const TableFormat& format,
                             int64_t* num_fields) {
  text.remove_prefix(std::min(text.find_first_not_of("\r\n"), text.size()));
  TextState state = TextState::kFieldStart;
  *num_fields = 1;
  size_t end = 0;
  for (; end < text.size(); ++end) {
    const char c = text[end];
    if (c == '\n' && state != TextState::kQuoted) break;
    if (c == format.delimiter && state != TextState::kQuoted) ++*num_fields;
    state = NextState(state, c, format);
  }
  text = text.substr(0, end);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

StatusOr<std::vector<std::string>> NamesIn(std::string_view record, int64_t num_fields,
                                           const TableFormat& format) {
  std::vector<BadRecord> bad;
  RecordCutter cutter(record, format, num_fields);
  if (!cutter.Next(record.size(), &bad) || cutter.num_records() != 1) {
    return InvalidArgument("the names of the columns cannot be read from ", ShownField(record));
  }
  std::vector<std::string> names;
  std::string unquoted;
  for (int64_t c = 0; c < num_fields; ++c) {
    names.emplace_back(FieldText(cutter.Field(0, c), format.quotes, &unquoted));
  }
  return names;
}

/// InvalidArgument for files that are no text and that a user may take for tables.
Status CheckIsText(std::string_view begin) {
  if (begin.starts_with("PAR1")) {
    return InvalidArgument("found a Parquet file, wanted text such as CSV");
  }
  if (begin.starts_with("PK\x03\x04")) {
    return InvalidArgument("found a zip file, as .zip and .xlsx are, wanted text such as CSV");
  }
  if (begin.starts_with("\xd0\xcf\x11\xe0")) {
    return InvalidArgument("found a file of an office program, wanted text such as CSV");
  }
  return OkStatus();
}

}  // namespace

StatusOr<TableHeader> ReadTableHeader(const std::vector<TableFile>& files,
                                      const TableFormat& format, const FileContext& context) {
  for (size_t f = 0; f < files.size(); ++f) {
    const TableUnit whole = {static_cast<int64_t>(f), 0, files[f].size};
    TENON_ASSIGN_OR_RETURN(const std::unique_ptr<TextPieces> pieces,
                           OpenUnit(files[f], whole, std::nullopt, format, context));
    TextPiece piece;
    const auto found = pieces->Next(kHeadBytes, &piece);
    if (!found.ok()) return Annotate(found.status(), ShownFile(files[f]));
    const Status is_text = CheckIsText(piece.records);
    if (!is_text.ok()) return Annotate(is_text, ShownFile(files[f]));
    int64_t num_fields;
    const std::string_view record = FirstRecord(piece.records, format, &num_fields);
    if (record.empty()) continue;
    auto names = NamesIn(record, num_fields, format);
    if (!names.ok()) return Annotate(names.status(), ShownFile(files[f]));
    return TableHeader{*std::move(names), std::string(record), files[f].path};
  }
  return InvalidArgument(ShownFile(files.front()),
                         files.size() > 1 ? " and all other files of the table are" : " is",
                         " empty, wanted a first line with the names of the columns");
}

StatusOr<int64_t> FindColumn(const TableHeader& header, std::string_view name) {
  const auto begin = header.names.begin(), end = header.names.end();
  const auto found = std::find(begin, end, name);
  if (found == end) {
    return InvalidArgument("there is no column '", name, "'",
                           DidYouMeanOrNames(name, header.names));
  }
  if (std::find(found + 1, end, name) != end) {
    return InvalidArgument("there are two columns '", name, "', wanted one");
  }
  return found - begin;
}

StatusOr<std::string_view> WithoutHeader(std::string_view records, const TableHeader& header,
                                         const TableFormat& format) {
  if (header.record.empty()) return records;
  int64_t num_fields;
  const std::string_view first = FirstRecord(records, format, &num_fields);
  if (first.empty()) return records.substr(records.size());
  if (first != header.record) {
    return InvalidArgument("found the first line ", ShownField(first), ", wanted the header ",
                           ShownField(header.record), " of '", header.path, "'");
  }
  return records.substr(static_cast<size_t>(first.data() + first.size() - records.data()));
}

}  // namespace tenon
