// SPDX-License-Identifier: Apache-2.0
#include "data/table/table_shard.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/base/parallel.h"
#include "core/base/strings.h"
#include "core/memory/counted_memory.h"
#include "data/csv/read_number.h"

namespace tenon {
namespace {

/// A guess of the time in which a byte is read and cut.
constexpr double kNsOfByte = 4;
/// A guess of the time in which a column of a unit, some 100,000 rows, is recoded.
constexpr double kNsOfRecodedUnit = 2e5;

int64_t BytesOf(const TableBlock& block) {
  int64_t bytes = 0;
  for (const PackedColumn& column : block.columns) bytes += column.bytes();
  return bytes;
}

int64_t BytesOf(const std::vector<TableBlock>& blocks) {
  int64_t bytes = 0;
  for (const TableBlock& block : blocks) bytes += BytesOf(block);
  return bytes;
}

/// The codes in `levels`, to which it adds what is new, of the codes in `from`.
CountedVector<int32_t> AddLevels(const TextLevels& from, TextLevels* levels) {
  CountedVector<int32_t> codes(from.size());
  for (int32_t i = 0; i < from.size(); ++i) codes[i] = levels->Code(from.text(i));
  return codes;
}

}  // namespace

/// The memory that units which are read at once may still take.
class TableShard::MemoryLeft {
 public:
  explicit MemoryLeft(int64_t bytes) : left_(bytes) {}

  /// Takes memory; false, with none taken, when there is not so much.
  bool Take(int64_t bytes) {
    if (left_.fetch_sub(bytes, std::memory_order_relaxed) >= bytes) return true;
    GiveBack(bytes);
    return false;
  }
  void GiveBack(int64_t bytes) { left_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> left_;
};

/// A column of a unit, whose parts come one after the other.
class TableShard::UnitColumn {
 public:
  UnitColumn(ColumnReport* report, UnitLevels* levels) : report_(*report), levels_(*levels) {}

  /// Appends a part; false when it is of another kind than those before.
  bool Append(const ColumnPart& part, bool is_first, PackedColumn* packed) {
    if (!is_first && part.is_text != report_.is_text) return false;
    report_.is_text = part.is_text;
    report_.has_leading_zeros |= part.has_leading_zeros;
    report_.num_missing += part.num_missing;
    if (!part.is_text) {
      *packed = PackedColumn::OfNumbers(part.numbers);
      return true;
    }
    levels_.counts.resize(part.levels.size());
    for (const int32_t code : part.codes) {
      if (code >= 0) ++levels_.counts[code];
    }
    *packed = PackedColumn::OfCodes(part.codes);
    return true;
  }
  /// Takes the levels of the last part.
  void Finish(ColumnPart* part) {
    if (!report_.is_text) return;
    levels_.levels = std::move(part->levels);
    double number;
    for (int32_t i = 0; i < levels_.levels.size(); ++i) {
      if (ReadFieldNumber(levels_.levels.text(i), &number))
        report_.num_numbers += levels_.counts[i];
    }
  }

 private:
  ColumnReport& report_;
  UnitLevels& levels_;
};

TableShard::TableShard(std::vector<TableFile> files, TableSchema schema,
                       std::vector<TableUnit> units)
    : files_(std::move(files)),
      schema_(std::move(schema)),
      units_(std::move(units)),
      read_(units_.size()),
      places_(schema_.columns.size()) {}

void TableShard::TakeAsText(absl::Span<const int64_t> columns) {
  for (const int64_t column : columns) schema_.columns[column].as_text = true;
}

Status TableShard::CheckRead() const {
  for (size_t u = 0; u < read_.size(); ++u) {
    if (read_[u].report.columns.size() != schema_.columns.size()) {
      return FailedPrecondition("unit ", u, " of a table was not read");
    }
    for (size_t c = 0; c < schema_.columns.size(); ++c) {
      const bool is_text = read_[u].report.columns[c].is_text;
      if (read_[u].report.num_rows == 0 || is_text == IsText(static_cast<int64_t>(c))) continue;
      return FailedPrecondition("column ", c, " of a table is of texts in some units, of numbers ",
                                "in others");
    }
  }
  return OkStatus();
}

int64_t TableShard::num_rows() const {
  int64_t rows = 0;
  for (const UnitRead& unit : read_) rows += unit.report.num_rows;
  return rows;
}

bool TableShard::IsText(int64_t column) const {
  const auto with_rows = std::find_if(read_.begin(), read_.end(),
                                      [](const UnitRead& u) { return u.report.num_rows > 0; });
  return with_rows != read_.end() && with_rows->report.columns[column].is_text;
}

bool TableShard::HasLevels(int64_t column) const {
  return std::all_of(read_.begin(), read_.end(), [&](const UnitRead& u) {
    return u.report.num_rows == 0 ||
           (u.report.columns[column].is_text && !u.columns[column].recoded);
  });
}

StatusOr<std::optional<TableShard::UnitRead>> TableShard::ReadOnce(
    const ReadUnit& what, TableSchema* schema, MemoryLeft* memory,
    const FileContext& context) const {
  const TableUnit& unit = units_[what.unit];
  TENON_ASSIGN_OR_RETURN(const auto reader,
                         UnitReader::Open(files_[unit.file], unit, what.state, *schema, context));
  const size_t num_columns = schema->columns.size();
  UnitRead read;
  UnitReport& report = read.report;
  report.began = reader->state();
  report.columns.resize(num_columns);
  read.columns.resize(num_columns);
  std::vector<UnitColumn> columns;
  for (size_t c = 0; c < num_columns; ++c) {
    report.columns[c].is_text = schema->columns[c].as_text;  // of a unit without records too
    columns.emplace_back(&report.columns[c], &read.columns[c]);
  }
  read.held = true;
  bool is_mixed = false, is_first = true;
  TablePart part;
  while (true) {
    TENON_RETURN_IF_ERROR(context.CheckCancelled());
    TENON_ASSIGN_OR_RETURN(const bool found, reader->Next(&part));
    if (!found) break;
    TableBlock block = {part.num_rows, std::vector<PackedColumn>(num_columns)};
    for (size_t c = 0; c < num_columns; ++c) {
      if (columns[c].Append(part.columns[c], is_first, &block.columns[c])) continue;
      schema->columns[c].as_text = true;
      is_mixed = true;
    }
    report.num_rows += part.num_rows;
    is_first = false;
    if (read.held && memory->Take(BytesOf(block))) {
      read.blocks.push_back(std::move(block));
    } else if (read.held) {
      // The memory of its first parts is of more use to units that fit whole.
      memory->GiveBack(BytesOf(read.blocks));
      read.blocks = {};
      read.held = false;
    }
  }
  if (is_mixed) {
    memory->GiveBack(BytesOf(read.blocks));
    return std::nullopt;
  }
  for (size_t c = 0; c < part.columns.size(); ++c) columns[c].Finish(&part.columns[c]);
  report.scan = reader->scan();
  report.num_rejected = reader->num_rejected();
  report.rejected = reader->rejected();
  return read;
}

StatusOr<TableShard::UnitRead> TableShard::ReadOne(const ReadUnit& what, MemoryLeft* memory,
                                                   const FileContext& context) const {
  TableSchema schema = schema_;
  while (true) {
    TENON_ASSIGN_OR_RETURN(std::optional<UnitRead> read, ReadOnce(what, &schema, memory, context));
    if (read) return *std::move(read);
  }
}

Status TableShard::Read(absl::Span<const ReadUnit> units, const FileContext& context) {
  std::vector<StatusOr<UnitRead>> read;
  int64_t bytes = 0;
  for (const ReadUnit& what : units) {
    read.push_back(Cancelled("the table was not read to its end"));
    bytes += units_[what.unit].end - units_[what.unit].begin;
    read_[what.unit].held = false;
    read_[what.unit].blocks = {};
  }
  MemoryLeft memory(memory_limit_ - this->bytes());
  const auto count = static_cast<int64_t>(units.size());
  const double cost = kNsOfByte * static_cast<double>(bytes) / std::max<double>(count, 1);
  ParallelFor(count, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) read[i] = ReadOne(units[i], &memory, context);
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
    const UnitLevels& own = read.columns[column];
    const CountedVector<int32_t> codes = AddLevels(own.levels, &all.levels);
    all.counts.resize(all.levels.size());
    for (size_t i = 0; i < own.counts.size(); ++i) all.counts[codes[i]] += own.counts[i];
  }
  return all;
}

void TableShard::Recode(int64_t column, const std::vector<std::string>& texts) {
  places_[column] = TextLevels();
  for (const std::string& text : texts) places_[column].Code(text);
  const auto count = static_cast<int64_t>(read_.size());
  ParallelFor(count, kNsOfRecodedUnit, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      if (!read_[u].report.columns.empty()) RecodeUnit(column, &read_[u]);
    }
  });
}

void TableShard::RecodeUnit(int64_t column, UnitRead* unit) const {
  const TextLevels& levels = unit->columns[column].levels;
  CountedVector<int32_t> codes(levels.size());
  for (int32_t i = 0; i < levels.size(); ++i) codes[i] = places_[column].Find(levels.text(i));
  for (TableBlock& block : unit->blocks) {
    CountedVector<int32_t> values(block.num_rows);
    block.columns[column].CopyCodes(0, block.num_rows, values.data());
    for (int32_t& value : values) value = value < 0 ? -1 : codes[value];
    block.columns[column] = PackedColumn::OfCodes(values);
  }
  unit->columns[column] = UnitLevels();
  unit->columns[column].recoded = true;
}

StatusOr<std::unique_ptr<TableShard::ParsedUnit>> TableShard::Parse(
    int64_t unit, const FileContext& context) const {
  std::unique_ptr<ParsedUnit> parsed(new ParsedUnit(*this, unit));
  TENON_RETURN_IF_ERROR(parsed->Open(context));
  return parsed;
}

Status TableShard::ForEachBlock(int64_t unit, absl::FunctionRef<Status(const TableBlock&)> give,
                                const FileContext& context) const {
  if (!read_[unit].held) {
    TENON_ASSIGN_OR_RETURN(const auto parsed, Parse(unit, context));
    TableBlock block;
    while (true) {
      TENON_RETURN_IF_ERROR(context.CheckCancelled());
      TENON_ASSIGN_OR_RETURN(const bool found, parsed->Next(&block));
      if (!found) return OkStatus();
      TENON_RETURN_IF_ERROR(give(block));
    }
  }
  for (const TableBlock& block : read_[unit].blocks) {
    TENON_RETURN_IF_ERROR(context.CheckCancelled());
    TENON_RETURN_IF_ERROR(give(block));
  }
  return OkStatus();
}

int64_t TableShard::bytes() const {
  int64_t bytes = 0;
  for (const UnitRead& read : read_) bytes += BytesOf(read.blocks);
  return bytes;
}

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
    return Changed(StrCat(num_rows_, " rows and ", reader_->num_rejected(), " bad records, wanted ",
                          report.num_rows, " and ", report.num_rejected));
  }
  for (size_t c = 0; c < codes_.size(); ++c) {
    if (num_missing_[c] != report.columns[c].num_missing) return Changed("other values");
  }
  return OkStatus();
}

}  // namespace tenon
