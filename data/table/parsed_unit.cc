// SPDX-License-Identifier: Apache-2.0
#include "data/table/parsed_unit.h"

#include <algorithm>

#include "core/base/strings.h"

namespace tenon {

TableShard::ParsedUnit::ParsedUnit(const TableShard& shard, int64_t unit)
    : shard_(shard),
      unit_(shard.units_[unit]),
      read_(shard.read_[unit]),
      schema_(shard.schema_),
      num_missing_(schema_.columns.size()),
      codes_(schema_.columns.size()) {
  for (size_t c = 0; c < schema_.columns.size(); ++c) {
    schema_.columns[c].as_text = read_.report.columns[c].is_text;
  }
}

Status TableShard::ParsedUnit::Open(const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(reader_, UnitReader::Open(shard_.files_[unit_.file], unit_,
                                                   read_.report.began, schema_, context));
  return OkStatus();
}

bool TableShard::ParsedUnit::MakeBlock(TableBlock* block) {
  *block = {part_.num_rows, std::vector<PackedColumn>(part_.columns.size())};
  for (size_t c = 0; c < part_.columns.size(); ++c) {
    ColumnPart& column = part_.columns[c];
    if (column.is_text != read_.report.columns[c].is_text) return false;
    if (!column.is_text) {
      block->columns[c] = PackedColumn::OfNumbers(column.numbers);
      continue;
    }
    const UnitLevels& own = read_.columns[c];
    const TextLevels& levels = own.recoded ? shard_.places_[c] : own.levels;
    CountedVector<int32_t>& known = codes_[c];
    for (auto i = static_cast<int32_t>(known.size()); i < column.levels.size(); ++i) {
      known.push_back(levels.Find(column.levels.text(i)));
      if (known.back() < 0 && !own.recoded) return false;
    }
    for (int32_t& code : column.codes) code = code < 0 ? -1 : known[code];
    block->columns[c] = PackedColumn::OfCodes(column.codes);
  }
  return true;
}

Status TableShard::ParsedUnit::Changed(std::string_view how) const {
  return FailedPrecondition("the file ", ShownFile(shard_.files_[unit_.file]),
                            " was changed while the table was read: the part from byte ",
                            unit_.begin, " on has ", how);
}

StatusOr<bool> TableShard::ParsedUnit::Next(TableBlock* block) {
  TENON_ASSIGN_OR_RETURN(const bool found, reader_->Next(&part_));
  if (!found) {
    TENON_RETURN_IF_ERROR(CheckEnd());
    return false;
  }
  num_rows_ += part_.num_rows;
  for (size_t c = 0; c < codes_.size(); ++c) num_missing_[c] += part_.columns[c].num_missing;
  if (!MakeBlock(block)) return Changed("other values");
  return true;
}

Status TableShard::ParsedUnit::CheckEnd() const {
  const UnitReport& report = read_.report;
  if (num_rows_ != report.num_rows || reader_->num_rejected() != report.num_rejected) {
    return Changed(StrCat(num_rows_, " rows and ", reader_->num_rejected(),
                          " bad records, wanted ", report.num_rows, " and ", report.num_rejected));
  }
  for (size_t c = 0; c < codes_.size(); ++c) {
    if (num_missing_[c] != report.columns[c].num_missing) return Changed("other values");
  }
  return OkStatus();
}

}  // namespace tenon
