// SPDX-License-Identifier: Apache-2.0
#include "data/table/table_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/strings.h"
#include "data/table/merge_levels.h"
#include "data/table/settle_table.h"
#include "tests/data/sample_files.h"
#include "tests/data/whole_schema.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TableShardTest : public ::testing::Test {
 protected:
  /// A shard with all units of a file, whose columns it reads.
  TableShard ShardOf(const std::string& path, int64_t unit_bytes) {
    const auto files = FindTableFiles({path}).value();
    return TableShard(files, WholeSchema(files), CutIntoUnits(files, unit_bytes));
  }
  static std::vector<TableShard::ReadUnit> AllOf(const TableShard& shard) {
    std::vector<TableShard::ReadUnit> units;
    for (int64_t u = 0; u < shard.num_units(); ++u) units.push_back({u, std::nullopt});
    return units;
  }

  const TemporaryFolder folder_;
};

TEST_F(TableShardTest, ColumnsComeBackFromAllUnits) {
  std::string text = "n,t\n";
  for (int i = 0; i < 1000; ++i)
    StrAppend(&text, i, ",", i % 7 == 0 ? "NA" : StrCat("k", i % 5), "\n");
  TableShard shard = ShardOf(folder_.Write("t.csv", text), 500);
  EXPECT_GT(shard.num_units(), 10);
  ASSERT_TRUE(shard.Read(AllOf(shard)).ok());
  double next = 0;
  int64_t rows = 0, missing = 0;
  for (int64_t u = 0; u < shard.num_units(); ++u) {
    rows += shard.report(u).num_rows;
    missing += shard.report(u).columns[1].num_missing;
    for (const TableBlock& block : shard.blocks(u)) {
      std::vector<double> numbers(block.num_rows);
      block.columns[0].CopyNumbers(0, block.num_rows, numbers.data());
      for (const double number : numbers) EXPECT_EQ(number, next++);
    }
  }
  EXPECT_EQ(rows, 1000);
  EXPECT_EQ(missing, 143);
  const ColumnLevels levels = shard.LevelsOf(1);
  EXPECT_EQ(levels.levels.size(), 5);
  EXPECT_EQ(levels.levels.text(0), "k1");
  EXPECT_EQ(std::accumulate(levels.counts.begin(), levels.counts.end(), int64_t{0}), 857);
  EXPECT_GT(shard.bytes(), 2500);
  EXPECT_LT(shard.bytes(), 3000);  // a byte a row for texts, two for most of the numbers
}

TEST_F(TableShardTest, LevelsAreMergedInOneOrderHoweverManyShardsThereAre) {
  std::string text = "t,n\n";
  for (int i = 0; i < 500; ++i) {
    StrAppend(&text, i % 3 == 0 ? "b" : i % 3 == 1 ? "B" : "NA", ",", i % 12, "\n");
  }
  const std::string path = folder_.Write("t.csv", text);
  TableLevels wanted;
  for (const int64_t num_shards : {1, 2, 3}) {
    std::vector<TableShard> shards;
    std::vector<std::vector<ColumnLevels>> levels(2);
    for (int64_t s = 0; s < num_shards; ++s) {
      shards.push_back(ShardOf(path, 300));
      TableShard& shard = shards.back();
      shard.TakeAsText({0, 1});
      std::vector<TableShard::ReadUnit> own;
      for (int64_t u = s; u < shard.num_units(); u += num_shards) own.push_back({u, std::nullopt});
      ASSERT_TRUE(shard.Read(own).ok());
      for (int64_t c = 0; c < 2; ++c) levels[c].push_back(shard.LevelsOf(c));
    }
    for (int64_t c = 0; c < 2; ++c) {
      std::vector<const ColumnLevels*> parts;
      for (auto part = levels[c].rbegin(); part != levels[c].rend(); ++part) {
        parts.push_back(&*part);
      }
      const TableLevels merged = MergeLevels(parts);
      if (c == 0) EXPECT_THAT(merged.texts, ElementsAre("B", "b"));
      if (c == 0) EXPECT_THAT(merged.counts, ElementsAre(167, 167));
      if (c == 1) {
        EXPECT_THAT(merged.texts,
                    ElementsAre("0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"));
      }
      std::vector<int64_t> counts(merged.texts.size());
      for (TableShard& shard : shards) {
        shard.Recode(c, merged.texts);
        for (int64_t u = 0; u < shard.num_units(); ++u) {
          for (const TableBlock& block : shard.blocks(u)) {
            std::vector<int32_t> codes(block.num_rows);
            block.columns[c].CopyCodes(0, block.num_rows, codes.data());
            for (const int32_t code : codes) {
              if (code >= 0) ++counts[code];
            }
          }
        }
      }
      EXPECT_EQ(counts, merged.counts);
    }
  }
}

TEST_F(TableShardTest, ALevelThatIsNotAskedForIsMissing) {
  TableShard shard = ShardOf(folder_.Write("t.csv", "t\nx\ny\nz\n\"\"\n"), 1000);
  ASSERT_TRUE(shard.Read(AllOf(shard)).ok());
  shard.Recode(0, {"z", "x"});
  std::vector<int32_t> codes(4);
  shard.blocks(0)[0].columns[0].CopyCodes(0, 4, codes.data());
  EXPECT_THAT(codes, ElementsAre(1, -1, 0, -1));
}

TEST_F(TableShardTest, AUnitThatBeganWithinQuotesIsReadAgain) {
  const std::string text = "a\n\"x\ny,z\nw\"\nb\n";
  TableShard shard = ShardOf(folder_.Write("t.csv", text), 6);
  ASSERT_EQ(shard.num_units(), 2);
  ASSERT_TRUE(shard.Read(AllOf(shard)).ok());
  const auto& way = shard.report(0).scan.from[static_cast<int>(shard.report(0).began)];
  EXPECT_EQ(way->end, TextState::kQuoted);
  EXPECT_NE(shard.report(1).began, TextState::kQuoted);
  EXPECT_EQ(shard.report(1).num_rows, 2);
  ASSERT_TRUE(shard.Read({{{1, way->end}}}).ok());
  EXPECT_EQ(shard.report(1).num_rows, 1);
  const ColumnLevels levels = shard.LevelsOf(0);
  ASSERT_EQ(levels.levels.size(), 2);
  EXPECT_EQ(levels.levels.text(0), "x\ny,z\nw");
  EXPECT_EQ(levels.levels.text(1), "b");
}

TEST_F(TableShardTest, ColumnsAreTextsWhereThatIsAskedFor) {
  const std::string path = folder_.Write("t.csv", "a,b\n1,x\n02,3\n2.50,-\n");
  TableShard shard = ShardOf(path, 1000);
  ASSERT_TRUE(shard.Read(AllOf(shard)).ok());
  EXPECT_FALSE(shard.report(0).columns[0].is_text);
  EXPECT_TRUE(shard.report(0).columns[0].has_leading_zeros);
  EXPECT_TRUE(shard.report(0).columns[1].is_text);
  EXPECT_EQ(shard.report(0).columns[1].num_numbers, 1);
  shard.TakeAsText({0});
  ASSERT_TRUE(shard.Read(AllOf(shard)).ok());
  EXPECT_TRUE(shard.report(0).columns[0].is_text);
  EXPECT_EQ(shard.report(0).columns[0].num_numbers, 3);
  EXPECT_EQ(shard.levels(0, 0).text(1), "02");
}

/// A compressed file is a unit of several parts; the last one has the text.
TEST_F(TableShardTest, AColumnThatIsTextInOnePartIsTextInAll) {
  std::string text = "a\n";
  int64_t rows = 0;
  while (static_cast<int64_t>(text.size()) < UnitReader::kPartBytes + 1000) {
    StrAppend(&text, rows++ % 1000, "\n");
  }
  text += "late\n";
  auto zipped = MakeCompressor(OpenOutput(folder_ / "t.csv.gz").value(), Compression::kGzip);
  ASSERT_TRUE(zipped->Append(text).ok() && zipped->Close().ok());
  TableShard shard = ShardOf(folder_ / "t.csv.gz", 1000);
  ASSERT_TRUE(shard.Read(AllOf(shard)).ok());
  EXPECT_EQ(shard.blocks(0).size(), 2u);
  EXPECT_EQ(shard.report(0).num_rows, rows + 1);
  EXPECT_EQ(shard.report(0).columns[0].num_numbers, rows);
  EXPECT_EQ(shard.LevelsOf(0).counts.back(), 1);
  EXPECT_EQ(shard.levels(0, 0).size(), 1001);
}

/// The values of a table, as all its blocks have them: a row of numbers and codes after the other.
StatusOr<std::vector<double>> ValuesOf(const TableShard& shard) {
  std::vector<double> values;
  for (int64_t u = 0; u < shard.num_units(); ++u) {
    TENON_RETURN_IF_ERROR(shard.ForEachBlock(u, [&](const TableBlock& block) {
      for (size_t c = 0; c < block.columns.size(); ++c) {
        std::vector<double> numbers(block.num_rows);
        std::vector<int32_t> codes(block.num_rows);
        const bool is_text = shard.report(u).columns[c].is_text;
        if (is_text) block.columns[c].CopyCodes(0, block.num_rows, codes.data());
        if (!is_text) block.columns[c].CopyNumbers(0, block.num_rows, numbers.data());
        if (is_text) numbers.assign(codes.begin(), codes.end());
        for (double& number : numbers) number = number != number ? -1000 : number;
        values.insert(values.end(), numbers.begin(), numbers.end());
      }
      return OkStatus();
    }));
  }
  return values;
}

TEST_F(TableShardTest, RowsBeyondTheMemoryAreTheSameWhenTheyAreParsedAgain) {
  std::string text = "n,t,u\n";
  for (int i = 0; i < 3000; ++i) {
    StrAppend(&text, i % 9 == 0 ? "NA" : StrCat(i * 0.25), ",",
              i % 7 == 0 ? "NA" : StrCat("k", i % 5), ",\"x\n", i % 300, "\"\n",
              i % 100 == 0 ? "bad\n" : "");
  }
  const std::string plain = folder_.Write("t.csv", text);
  auto zipped = MakeCompressor(OpenOutput(folder_ / "t.csv.gz").value(), Compression::kGzip);
  ASSERT_TRUE(zipped->Append(text).ok() && zipped->Close().ok());
  for (const std::string& path : {plain, folder_ / "t.csv.gz"}) {
    std::vector<double> wanted[2];
    int64_t all_bytes = 0;
    for (const int64_t share : {100, 0, 50}) {
      const auto files = FindTableFiles({path}).value();
      TableShard shard = ShardOf(path, 1000);
      if (share < 100) shard.LimitMemory(all_bytes * share / 100);
      const auto settled = ReadWholeTable(files, CutIntoUnits(files, 1000), &shard);
      ASSERT_TRUE(settled.ok()) << settled.status();
      EXPECT_EQ(settled->num_rows, 3000);
      EXPECT_EQ(settled->num_rejected, 30);
      if (share == 100) all_bytes = shard.bytes();
      EXPECT_LE(shard.bytes(), all_bytes * share / 100);
      int64_t held = 0;
      for (int64_t u = 0; u < shard.num_units(); ++u) held += shard.is_held(u) ? 1 : 0;
      if (share == 100) EXPECT_EQ(held, shard.num_units());
      if (share == 50 && path == plain) EXPECT_NEAR(held, shard.num_units() / 2, 3);
      if (share == 0) EXPECT_EQ(held, 0);
      for (int time = 0; time < 2; ++time) {  // by the codes of units, then by those of the table
        const auto values = ValuesOf(shard);
        ASSERT_TRUE(values.ok()) << values.status();
        if (share == 100) wanted[time] = *values;
        EXPECT_TRUE(*values == wanted[time]);
        if (time == 1) continue;
        for (const int64_t c : {1, 2}) {
          const ColumnLevels own = shard.LevelsOf(c);
          EXPECT_EQ(own.levels.size(), c == 1 ? 5 : 300);
          TableLevels merged = MergeLevels({&own});
          if (c == 1) merged.texts.pop_back();  // of which the rows are missing then
          shard.Recode(c, merged.texts);
        }
      }
    }
  }
}

TEST_F(TableShardTest, WhatIsParsedAgainIsWhatItWas) {
  const auto at = std::filesystem::file_time_type::clock::now();
  const auto write = [&](std::string_view content) {
    const std::string path = folder_.Write("t.csv", content);
    std::filesystem::last_write_time(path, at);
    return path;
  };
  TableShard shard = ShardOf(write("a,b\n1,x\n2,y\n3,NA\n"), 1000);
  shard.LimitMemory(0);
  ASSERT_TRUE(shard.Read(AllOf(shard)).ok());
  EXPECT_TRUE(ValuesOf(shard).ok());
  const auto message = [&](std::string_view content) {
    write(content);
    const Status status = ValuesOf(shard).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << content;
    return std::string(Message(status));
  };
  EXPECT_THAT(message("a,b\n1,x\n2,z\n3,NA\n"), HasSubstr("byte 0 on has other values"));
  EXPECT_THAT(message("a,b\n1,x\nu,y\n3,NA\n"), HasSubstr("byte 0 on has other values"));
  EXPECT_THAT(message("a,b\n1,x\n2,y\nNA,y\n"), HasSubstr("byte 0 on has other values"));
  EXPECT_THAT(message("a,b\n1,x\n2,y\n3\nNA\n"),
              HasSubstr("has 2 rows and 2 bad records, wanted 3 and 0"));
  EXPECT_THAT(message("a,b\n1,x\n2,y\n3,N,"), HasSubstr("found 16 bytes, wanted 17"));
}

TEST_F(TableShardTest, RowsAreGivenUntilWhoeverTakesThemHasEnough) {
  TableShard shard = ShardOf(folder_.Write("t.csv", "a\n1\n2\n"), 1000);
  for (const int64_t limit : {1000, 0}) {
    shard.LimitMemory(limit);
    ASSERT_TRUE(shard.Read(AllOf(shard)).ok());
    EXPECT_EQ(shard.is_held(0), limit > 0);
    const auto enough = [](const TableBlock&) { return Aborted("enough"); };
    EXPECT_EQ(Message(shard.ForEachBlock(0, enough)), "enough");
  }
}

TEST_F(TableShardTest, AnErrorLeavesWhatWasThere) {
  const std::string path = folder_.Write("t.csv", "a\n1\n2\n");
  TableShard shard = ShardOf(path, 1000);
  ASSERT_TRUE(shard.Read(AllOf(shard)).ok());
  folder_.Write("t.csv", "a\n1\n2\n3\n");
  EXPECT_THAT(Message(shard.Read(AllOf(shard))), HasSubstr("was changed while"));
  EXPECT_EQ(shard.report(0).num_rows, 2);
}

}  // namespace
}  // namespace tenon
