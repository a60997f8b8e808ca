// SPDX-License-Identifier: Apache-2.0
#include "data/table/table_shard.h"

#include <algorithm>
#include <utility>

#include "core/base/hash_map.h"
#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "data/csv/read_number.h"

namespace tenon {
namespace {

/// A guess of the time in which a byte is read and cut.
constexpr double kNsOfByte = 4;
/// A guess of the time in which a column of a unit, some 100,000 rows, is recoded.
constexpr double kNsOfRecodedUnit = 2e5;

/// The rows with each level.
CountedVector<int64_t> CountLevels(absl::Span<const int32_t> codes, int32_t num_levels) {
  CountedVector<int64_t> counts(num_levels);
  for (const int32_t code : codes) {
    if (code >= 0) ++counts[code];
  }
  return counts;
}

/// The codes in `levels`, to which it adds what is new, of the codes in `from`.
CountedVector<int32_t> AddLevels(const TextLevels& from, TextLevels* levels) {
  CountedVector<int32_t> codes(from.size());
  for (int32_t i = 0; i < from.size(); ++i) codes[i] = levels->Code(from.text(i));
  return codes;
}

/// A column of a unit, whose parts come one after the other.
class UnitColumn {
 public:
  UnitColumn(ColumnReport* report, TextLevels* levels) : report_(*report), levels_(*levels) {}

  /// Appends a part; false when it is of another kind than those before.
  bool Append(ColumnPart part, bool is_first, PackedColumn* packed) {
    if (!is_first && part.is_text != report_.is_text) return false;
    report_.is_text = part.is_text;
    report_.has_leading_zeros |= part.has_leading_zeros;
    report_.num_missing += part.num_missing;
    if (!part.is_text) {
      *packed = PackedColumn::OfNumbers(part.numbers);
      return true;
    }
    const CountedVector<int64_t> counts = CountLevels(part.codes, part.levels.size());
    double number;
    for (int32_t i = 0; i < part.levels.size(); ++i) {
      if (ReadFieldNumber(part.levels.text(i), &number)) report_.num_numbers += counts[i];
    }
    if (is_first) {
      levels_ = std::move(part.levels);
    } else {
      const CountedVector<int32_t> codes = AddLevels(part.levels, &levels_);
      for (int32_t& code : part.codes) code = code < 0 ? -1 : codes[code];
    }
    *packed = PackedColumn::OfCodes(part.codes);
    return true;
  }

 private:
  ColumnReport& report_;
  TextLevels& levels_;
};

}  // namespace

TableShard::TableShard(std::vector<TableFile> files, TableSchema schema,
                       std::vector<TableUnit> units)
    : files_(std::move(files)),
      schema_(std::move(schema)),
      units_(std::move(units)),
      read_(units_.size()) {}

void TableShard::TakeAsText(absl::Span<const int64_t> columns) {
  for (const int64_t column : columns) schema_.columns[column].as_text = true;
}

StatusOr<std::optional<TableShard::UnitRead>> TableShard::ReadOnce(
    const ReadUnit& what, TableSchema* schema, const FileContext& context) const {
  const TableUnit& unit = units_[what.unit];
  TENON_ASSIGN_OR_RETURN(const auto reader,
                         UnitReader::Open(files_[unit.file], unit, what.state, *schema, context));
  const size_t num_columns = schema->columns.size();
  UnitRead read;
  UnitReport& report = read.report;
  report.began = reader->state();
  report.columns.resize(num_columns);
  read.levels.resize(num_columns);
  std::vector<UnitColumn> columns;
  for (size_t c = 0; c < num_columns; ++c) {
    columns.emplace_back(&report.columns[c], &read.levels[c]);
  }
  bool is_mixed = false;
  TablePart part;
  while (true) {
    TENON_RETURN_IF_ERROR(context.CheckCancelled());
    TENON_ASSIGN_OR_RETURN(const bool found, reader->Next(&part));
    if (!found) break;
    TableBlock block = {part.num_rows, std::vector<PackedColumn>(num_columns)};
    for (size_t c = 0; c < num_columns; ++c) {
      if (columns[c].Append(std::move(part.columns[c]), read.blocks.empty(), &block.columns[c])) {
        continue;
      }
      schema->columns[c].as_text = true;
      is_mixed = true;
    }
    report.num_rows += part.num_rows;
    read.blocks.push_back(std::move(block));
  }
  if (is_mixed) return std::nullopt;
  report.scan = reader->scan();
  report.num_rejected = reader->num_rejected();
  report.rejected = reader->rejected();
  return read;
}

StatusOr<TableShard::UnitRead> TableShard::ReadOne(const ReadUnit& what,
                                                   const FileContext& context) const {
  TableSchema schema = schema_;
  while (true) {
    TENON_ASSIGN_OR_RETURN(std::optional<UnitRead> read, ReadOnce(what, &schema, context));
    if (read) return *std::move(read);
  }
}

Status TableShard::Read(absl::Span<const ReadUnit> units, const FileContext& context) {
  std::vector<StatusOr<UnitRead>> read;
  int64_t bytes = 0;
  for (const ReadUnit& what : units) {
    read.push_back(Cancelled("the table was not read to its end"));
    bytes += units_[what.unit].end - units_[what.unit].begin;
  }
  const auto count = static_cast<int64_t>(units.size());
  const double cost = kNsOfByte * static_cast<double>(bytes) / std::max<double>(count, 1);
  ParallelFor(count, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) read[i] = ReadOne(units[i], context);
  });
  for (const StatusOr<UnitRead>& one : read) {
    if (!one.ok()) return one.status();
  }
  for (size_t i = 0; i < units.size(); ++i) read_[units[i].unit] = *std::move(read[i]);
  return OkStatus();
}

StatusOr<std::vector<PlacedText>> TableShard::FindTexts(const ReadUnit& what, int64_t column,
                                                        size_t most,
                                                        const FileContext& context) const {
  const TableUnit& unit = units_[what.unit];
  TENON_ASSIGN_OR_RETURN(const auto reader,
                         UnitReader::Open(files_[unit.file], unit, what.state, schema_, context));
  return reader->FindTexts(column, most);
}

StatusOr<PlacedText> TableShard::FindRow(const ReadUnit& what, int64_t column, int64_t row,
                                         const FileContext& context) const {
  const TableUnit& unit = units_[what.unit];
  TENON_ASSIGN_OR_RETURN(const auto reader,
                         UnitReader::Open(files_[unit.file], unit, what.state, schema_, context));
  return reader->FindRow(column, row);
}

StatusOr<std::vector<RejectedRecord>> TableShard::FindRejected(const ReadUnit& what,
                                                               const FileContext& context) const {
  const TableUnit& unit = units_[what.unit];
  TableSchema no_columns = schema_;
  no_columns.columns.clear();
  TENON_ASSIGN_OR_RETURN(const auto reader, UnitReader::Open(files_[unit.file], unit, what.state,
                                                             no_columns, context));
  reader->KeepRejected(SIZE_MAX);
  TablePart part;
  while (true) {
    TENON_RETURN_IF_ERROR(context.CheckCancelled());
    TENON_ASSIGN_OR_RETURN(const bool found, reader->Next(&part));
    if (!found) return reader->rejected();
  }
}

ColumnLevels TableShard::LevelsOf(int64_t column) const {
  ColumnLevels all;
  for (const UnitRead& read : read_) {
    if (read.report.columns.empty()) continue;
    const CountedVector<int32_t> codes = AddLevels(read.levels[column], &all.levels);
    all.counts.resize(all.levels.size());
    for (const TableBlock& block : read.blocks) {
      CountedVector<int32_t> own(block.num_rows);
      block.columns[column].CopyCodes(0, block.num_rows, own.data());
      const CountedVector<int64_t> counts = CountLevels(own, read.levels[column].size());
      for (size_t i = 0; i < counts.size(); ++i) all.counts[codes[i]] += counts[i];
    }
  }
  return all;
}

void TableShard::Recode(int64_t column, const std::vector<std::string>& texts) {
  flat_hash_map<std::string_view, int32_t> places;
  for (size_t i = 0; i < texts.size(); ++i) places[texts[i]] = static_cast<int32_t>(i);
  const auto count = static_cast<int64_t>(read_.size());
  ParallelFor(count, kNsOfRecodedUnit, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      if (!read_[u].blocks.empty()) RecodeUnit(column, places, &read_[u]);
    }
  });
}

void TableShard::RecodeUnit(int64_t column, const flat_hash_map<std::string_view, int32_t>& places,
                            UnitRead* unit) {
  TextLevels& levels = unit->levels[column];
  CountedVector<int32_t> codes(levels.size());
  for (int32_t i = 0; i < levels.size(); ++i) {
    const auto found = places.find(levels.text(i));
    codes[i] = found == places.end() ? -1 : found->second;
  }
  for (TableBlock& block : unit->blocks) {
    CountedVector<int32_t> values(block.num_rows);
    block.columns[column].CopyCodes(0, block.num_rows, values.data());
    for (int32_t& value : values) value = value < 0 ? -1 : codes[value];
    block.columns[column] = PackedColumn::OfCodes(values);
  }
  levels = TextLevels();
}

int64_t TableShard::bytes() const {
  int64_t bytes = 0;
  for (const UnitRead& read : read_) {
    for (const TableBlock& block : read.blocks) {
      for (const PackedColumn& column : block.columns) bytes += column.bytes();
    }
  }
  return bytes;
}

}  // namespace tenon
