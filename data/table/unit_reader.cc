// SPDX-License-Identifier: Apache-2.0
#include "data/table/unit_reader.h"

#include <algorithm>

#include "core/base/strings.h"

namespace tenon {
namespace {

/// The text, decompressed, of which a compressed file is looked at as a whole for ends of records.
constexpr int64_t kPieceBytes = 4 << 20;

}  // namespace
StatusOr<std::unique_ptr<UnitReader>> UnitReader::Open(const TableFile& file, const TableUnit& unit,
                                                       std::optional<TextState> state,
                                                       const TableSchema& schema,
                                                       const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(auto pieces, OpenUnit(file, unit, state, schema.format, context));
  return std::unique_ptr<UnitReader>(new UnitReader(file, unit, schema, std::move(pieces)));
}

StatusOr<bool> UnitReader::Next(TablePart* part) {
  auto found = Read(part);
  if (found.ok()) return found;
  return Annotate(found.status(), ShownFile(file_));
}

StatusOr<bool> UnitReader::NextRecords(std::string_view* records) {
  if (begun_ && !file_.compressed) return false;
  const int64_t bytes = file_.compressed ? kPieceBytes : unit_.end - unit_.begin;
  TENON_ASSIGN_OR_RETURN(const bool found, pieces_->Next(static_cast<size_t>(bytes), &piece_));
  if (!found) return false;
  begun_ = true;
  *records = piece_.records;
  if (is_behind_header_) return true;
  const bool is_empty = records->find_first_not_of("\r\n") == std::string_view::npos;
  if (is_empty && !file_.compressed && unit_.end < file_.size) {
    return InvalidArgument("found ", unit_.end, " bytes of empty lines at the beginning, wanted ",
                           "the names of the columns");
  }
  TENON_ASSIGN_OR_RETURN(*records, WithoutHeader(*records, schema_.header, schema_.format));
  is_behind_header_ = !is_empty;
  return true;
}

StatusOr<bool> UnitReader::Read(TablePart* part) {
  while (!records_ || !ReadTablePart(&*records_, part_bytes_, schema_.format, num_columns(),
                                     schema_.columns, part)) {
    std::string_view records;
    TENON_ASSIGN_OR_RETURN(const bool found, NextRecords(&records));
    if (!found) return false;
    records_.emplace(records, schema_.format, num_columns());
    counted_ = 0;
    counted_lines_ = std::count(piece_.records.data(), records.data(), '\n');
  }
  Reject(records_->text(), part->bad);
  return true;
}

int64_t UnitReader::LinesBefore(int64_t record) {
  const char* const text = records_->text().data();
  const size_t begin = records_->begin(record);
  counted_lines_ += std::count(text + counted_, text + begin, '\n');
  counted_ = begin;
  return piece_.lines_before + counted_lines_;
}

PlacedText UnitReader::Placed(FoundText found) const {
  const auto lines = std::count(piece_.records.data(), found.record.data(), '\n');
  return {std::move(found.text), piece_.lines_before + lines,
          std::string(found.record.substr(0, RejectedRecord::kShownBytes))};
}

StatusOr<std::vector<PlacedText>> UnitReader::FindTexts(int64_t column, size_t most) {
  std::vector<PlacedText> placed;
  std::string_view records;
  while (placed.size() < most) {
    TENON_ASSIGN_OR_RETURN(const bool found, NextRecords(&records));
    if (!found) break;
    const int64_t place = schema_.columns[column].place;
    for (FoundText& text :
         tenon::FindTexts(records, schema_.format, num_columns(), place, most - placed.size())) {
      placed.push_back(Placed(std::move(text)));
    }
  }
  return placed;
}

StatusOr<PlacedText> UnitReader::FindRow(int64_t column, int64_t row) {
  const int64_t place = schema_.columns[column].place, wanted = row;
  std::string_view records;
  while (true) {
    TENON_ASSIGN_OR_RETURN(const bool found, NextRecords(&records));
    if (!found) return OutOfRange("found ", wanted - row, " rows, wanted the row ", wanted);
    FoundText text;
    if (tenon::FindRow(records, schema_.format, num_columns(), place, &row, &text)) {
      return Placed(std::move(text));
    }
  }
}

void UnitReader::Reject(std::string_view text, const std::vector<BadRecord>& bad) {
  num_rejected_ += static_cast<int64_t>(bad.size());
  const auto skipped = text.data() - piece_.records.data();
  const char* counted = piece_.records.data();
  int64_t line = piece_.lines_before;
  for (const BadRecord& record : bad) {
    if (rejected_.size() == most_rejected_) return;
    const char* const begin = text.data() + record.begin;
    line += std::count(counted, begin, '\n');
    counted = begin;
    const size_t size = std::min(record.end - record.begin, RejectedRecord::kShownBytes);
    rejected_.push_back({record.kind, piece_.begin + skipped + static_cast<int64_t>(record.begin),
                         line, record.fields, std::string(begin, size)});
  }
}

}  // namespace tenon
