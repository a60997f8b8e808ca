// SPDX-License-Identifier: Apache-2.0
#include "data/table_places/rejects_file.h"

#include <string_view>

#include "core/base/strings.h"

namespace tenon {
namespace {

constexpr std::string_view kRejectsHeader = "file,line,byte,kind,fields,wanted,column,text\n";

std::string_view KindName(BadRecord::Kind kind) {
  switch (kind) {
    case BadRecord::Kind::kFields:
      return "fields";
    case BadRecord::Kind::kBehindQuote:
      return "behind_quote";
    case BadRecord::Kind::kOpenQuote:
      return "open_quote";
    case BadRecord::Kind::kLongField:
      return "long_field";
    case BadRecord::Kind::kNul:
      return "nul";
  }
  return "";
}

/// A text as a field of a table.
std::string AsField(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string field = "\"";
  for (const char c : text) field.append(c == '"' ? 2 : 1, c);
  return field + "\"";
}

}  // namespace

StatusOr<std::unique_ptr<RejectsFile>> RejectsFile::Create(const std::string& path,
                                                           const TablePlaces& places,
                                                           const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(auto file, OpenOutput(path, WriteMode::kTruncate, context));
  TENON_RETURN_IF_ERROR(file->Append(kRejectsHeader));
  return std::unique_ptr<RejectsFile>(new RejectsFile(std::move(file), places));
}

Status RejectsFile::Add(int64_t unit, absl::Span<const RejectedRecord> rejected) {
  const std::string file = AsField(places_.File(unit));
  for (const RejectedRecord& record : rejected) {
    const bool counts = record.kind == BadRecord::Kind::kFields;
    const std::string fields =
        counts ? StrCat(record.fields, ",", places_.schema().header.names.size(), ",")
               : StrCat(",,", record.fields);
    TENON_RETURN_IF_ERROR(file_->Append(
        StrCat(file, ",", places_.Line(unit, record.line), ",", places_.Byte(unit, record.byte),
               ",", KindName(record.kind), ",", fields, ",", AsField(record.text), "\n")));
  }
  return OkStatus();
}

}  // namespace tenon
