// SPDX-License-Identifier: Apache-2.0
//
// Tables against what Python's csv module reads: the recorded cases, or as many as
// tests/data/table/make_csv_cases.py writes into the file that TENON_CSV_CASES names.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/table/settle_table.h"
#include "tests/data/sample_files.h"
#include "tests/testing/memory_files.h"

namespace tenon {
namespace {

using Row = std::vector<std::string>;

struct ReadCase {
  std::vector<Row> rows;
  int64_t num_rejected = 0;
};

/// Reads a table in units of `unit_bytes`, every column as texts.
ReadCase ReadInUnits(const std::string& text, const TableFormat& format, int64_t unit_bytes) {
  testing::MemoryFiles memory;
  memory["t.csv"] = text;
  const FileContext context = {.files = &memory};
  const FileInfo info = StatFile("t.csv", context).value();
  const std::vector<TableFile> files = {{"t.csv", info.size, info.modified_at, false}};
  TableSchema schema;
  schema.format = format;
  schema.header = ReadTableHeader(files, format, context).value();
  const auto num_columns = static_cast<int64_t>(schema.header.names.size());
  for (int64_t c = 0; c < num_columns; ++c) schema.columns.push_back({c, true});
  const std::vector<TableUnit> units = CutIntoUnits(files, unit_bytes);
  TableShard shard(files, schema, units);
  ReadCase read;
  read.num_rejected = ReadWholeTable(files, units, &shard, context).value().num_rejected;
  for (int64_t u = 0; u < shard.num_units(); ++u) {
    for (const TableBlock& block : shard.blocks(u)) {
      std::vector<Row> rows(block.num_rows, Row(num_columns));
      std::vector<int32_t> codes(block.num_rows);
      for (int64_t c = 0; c < num_columns; ++c) {
        block.columns[c].CopyCodes(0, block.num_rows, codes.data());
        for (int64_t r = 0; r < block.num_rows; ++r) {
          if (codes[r] >= 0) rows[r][c] = shard.levels(u, c).text(codes[r]);
        }
      }
      read.rows.insert(read.rows.end(), rows.begin(), rows.end());
    }
  }
  return read;
}

TEST(CsvCasesTest, TablesAreAsPythonReadsThem) {
  const char* const given = std::getenv("TENON_CSV_CASES");
  std::ifstream file(given != nullptr ? given : SamplePath("table/csv_cases.jsonl"));
  std::string line;
  int64_t count = 0;
  while (std::getline(file, line)) {
    const nlohmann::json wanted = nlohmann::json::parse(line);
    const std::string text = wanted["text"];
    TableFormat format = {wanted["delimiter"].get<std::string>()[0], true, {}};
    for (const int64_t unit_bytes : {int64_t{1000000}, 1 + count % 40}) {
      const ReadCase read = ReadInUnits(text, format, unit_bytes);
      if (wanted["rows"].is_null()) {
        ASSERT_GE(read.num_rejected, 1) << text;
      } else {
        ASSERT_EQ(read.rows, wanted["rows"].get<std::vector<Row>>()) << text;
        ASSERT_EQ(read.num_rejected, wanted["rejected"].get<int64_t>()) << text;
      }
    }
    ++count;
  }
  EXPECT_GE(count, 2000);
}

}  // namespace
}  // namespace tenon
