// SPDX-License-Identifier: Apache-2.0
//
// A table in text, read whole and in units of a few bytes: both have the same rows and rejects.
#include "core/memory/memory_limit.h"
#include "data/table/settle_table.h"
#include "tests/fuzz/fuzz_bytes.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/testing/memory_files.h"

namespace tenon::testing {
namespace {

constexpr int64_t kTableMemory = int64_t{256} << 20;
/// More of them would have a small unit read on through the whole text again and again.
constexpr size_t kLongestTable = 4096;

struct ReadTable {
  TableSettlement settled;
  std::vector<std::string> values;  // of all rows, column by column within a unit's
};

void AddValues(const TableShard& shard, int64_t unit, int64_t column,
               std::vector<std::vector<std::string>>* columns) {
  const ColumnReport& report = shard.report(unit).columns[column];
  int64_t num_missing = 0;
  for (const TableBlock& block : shard.blocks(unit)) {
    std::vector<double> numbers(static_cast<size_t>(block.num_rows));
    std::vector<int32_t> codes(static_cast<size_t>(block.num_rows));
    const PackedColumn& packed = block.columns[column];
    if (report.is_text) packed.CopyCodes(0, block.num_rows, codes.data());
    if (!report.is_text) packed.CopyNumbers(0, block.num_rows, numbers.data());
    for (int64_t r = 0; r < block.num_rows; ++r) {
      const bool missing = report.is_text ? codes[r] < 0 : numbers[r] != numbers[r];
      num_missing += missing ? 1 : 0;
      (*columns)[column].push_back(missing          ? "missing"
                                   : report.is_text ? shard.levels(unit, column).text(codes[r])
                                                    : StrCat(numbers[r]));
    }
  }
  TENON_CHECK(num_missing == report.num_missing, num_missing, " missing values are reported as ",
              report.num_missing);
}

StatusOr<ReadTable> Read(const std::vector<TableFile>& files, const TableSchema& schema,
                         int64_t unit_bytes, const FileContext& context) {
  const std::vector<TableUnit> units = CutIntoUnits(files, unit_bytes);
  TableShard shard(files, schema, units);
  ReadTable table;
  TENON_ASSIGN_OR_RETURN(table.settled, ReadWholeTable(files, units, &shard, context));
  std::vector<std::vector<std::string>> columns(schema.columns.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    for (int64_t u = 0; u < shard.num_units(); ++u) {
      AddValues(shard, u, static_cast<int64_t>(c), &columns);
    }
    table.values.insert(table.values.end(), columns[c].begin(), columns[c].end());
  }
  return table;
}

void FuzzTable(absl::Span<const uint8_t> data) {
  SetCpuMemoryLimit(kTableMemory);
  if (data.size() < 2 || data.size() > kLongestTable) return;
  FuzzBytes choices(data.subspan(0, 2));
  TableSchema schema;
  schema.format.quotes = !choices.Chance(20);
  const int64_t unit_bytes = 4 + choices.Below(60);
  if (unit_bytes % 5 == 0) schema.format.delimiter = '\t';
  MemoryFiles memory;
  memory["t.csv"] = std::string(reinterpret_cast<const char*>(data.data()) + 2, data.size() - 2);
  const FileContext context = {.files = &memory};
  const auto info = StatFile("t.csv", context);
  const std::vector<TableFile> files = {{"t.csv", info->size, info->modified_at, false}};
  auto header = ReadTableHeader(files, schema.format, context);
  if (!header.ok()) {
    TENON_CHECK(header.status().code() == StatusCode::kInvalidArgument, header.status().ToString());
    return;
  }
  schema.header = *std::move(header);
  for (size_t c = 0; c < schema.header.names.size(); ++c) {
    schema.columns.push_back({static_cast<int64_t>(c)});
  }
  const auto whole = Read(files, schema, static_cast<int64_t>(kLongestTable), context);
  TENON_CHECK(whole.ok(), whole.status().ToString());
  const auto parts = Read(files, schema, unit_bytes, context);
  if (!parts.ok()) {
    TENON_CHECK(parts.status().code() == StatusCode::kInvalidArgument, parts.status().ToString());
    return;  // empty lines before the header, which units of common sizes hold
  }
  TENON_CHECK(parts->settled.num_rows == whole->settled.num_rows, parts->settled.num_rows,
              " rows in units of ", unit_bytes, " bytes, but ", whole->settled.num_rows);
  TENON_CHECK(parts->settled.num_rejected == whole->settled.num_rejected, "rejects differ");
  // The units of a doubtful column are as they were read, some numbers and some texts.
  if (!whole->settled.doubtful.empty()) return;
  TENON_CHECK(parts->values == whole->values, "values differ in units of ", unit_bytes, " bytes");
}

std::vector<std::string> TableSeeds() {
  using namespace std::string_literals;
  return {
      "\0\1a,b\n1,x\n2,\"y\nz\"\n\"3\"\"\",NA\n"s,
      "\0\7\xef\xbb\xbf\"a\nb\"\tc\r\n\r\n1\t2\r\n3\r\n"s,
      "\xff\0a,b\n\"1,2\n3,\"\"\n007,-0\n1e400,nan\n"s,
      "\0\3\n\n\na\n1\n"s,
  };
}

const bool table_registered =
    RegisterFuzzTarget({.name = "table", .run = FuzzTable, .seeds = TableSeeds});

}  // namespace
}  // namespace tenon::testing
