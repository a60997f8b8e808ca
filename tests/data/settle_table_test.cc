// SPDX-License-Identifier: Apache-2.0
#include "data/table/settle_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/base/strings.h"
#include "tests/data/sample_files.h"
#include "tests/data/whole_schema.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A table that one shard reads, in units of so many bytes, until nothing is to be read again.
class WholeTable {
 public:
  WholeTable(const std::vector<std::string>& paths, int64_t unit_bytes)
      : files_(FindTableFiles(paths).value()),
        units_(CutIntoUnits(files_, unit_bytes)),
        shard_(files_, WholeSchema(files_), units_) {
    auto settled = ReadWholeTable(files_, units_, &shard_);
    EXPECT_TRUE(settled.ok()) << settled.status();
    if (settled.ok()) settled_ = *std::move(settled);
  }

  const TableSettlement& settled() const { return settled_; }
  const TableShard& shard() const { return shard_; }

  /// The values of a column.
  std::vector<std::string> Column(int64_t c) const {
    std::vector<std::string> values;
    for (int64_t u = 0; u < shard_.num_units(); ++u) {
      for (const TableBlock& block : shard_.blocks(u)) {
        std::vector<double> numbers(block.num_rows);
        std::vector<int32_t> codes(block.num_rows);
        const bool is_text = shard_.report(u).columns[c].is_text;
        if (is_text) block.columns[c].CopyCodes(0, block.num_rows, codes.data());
        if (!is_text) block.columns[c].CopyNumbers(0, block.num_rows, numbers.data());
        for (int64_t r = 0; r < block.num_rows; ++r) {
          values.push_back(!is_text       ? StrCat(numbers[r])
                           : codes[r] < 0 ? "NA"
                                          : shard_.levels(u, c).text(codes[r]));
        }
      }
    }
    return values;
  }

 private:
  const std::vector<TableFile> files_;
  const std::vector<TableUnit> units_;
  TableShard shard_;
  TableSettlement settled_;
};

class SettleTableTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
};

/// Texts with ends of lines and delimiters in quotes, in units of all sizes.
TEST_F(SettleTableTest, UnitsGiveWhatTheWholeFileGives) {
  std::mt19937 random(1);
  for (int run = 0; run < 40; ++run) {
    std::string text = "n,t,late\n";
    std::vector<std::string> wanted;
    const int rows = static_cast<int>(random() % 100) + 1;
    for (int i = 0; i < rows; ++i) {
      std::string value;
      for (size_t k = random() % 12 + 1; k > 0; --k) value += "a\n,b"[random() % 4];
      StrAppend(&text, i, ",\"", value, "\",", i + 1 < rows ? "1" : "x", "\n");
      wanted.push_back(value);
    }
    const std::string path = folder_.Write("t.csv", text);
    for (const int64_t bytes : {1, 3, 7, 20, 100, 100000}) {
      const WholeTable table({path}, bytes);
      ASSERT_EQ(table.Column(1), wanted) << bytes;
      EXPECT_EQ(table.settled().num_rows, rows);
      EXPECT_EQ(table.settled().num_rejected, 0);
      EXPECT_EQ(table.Column(0).back(), StrCat(rows - 1));
      EXPECT_EQ(table.Column(2).back(), "x");
    }
  }
}

TEST_F(SettleTableTest, LinesAreCountedThroughAllUnitsOfAFile) {
  const std::string a = folder_.Write("a.csv", "x\n1\n\"2\n\"\n3\n4\n5\n6\n7\n8\n9\n");
  const std::string b = folder_.Write("b.csv", "x\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  const WholeTable table({a, b}, 8);
  EXPECT_THAT(table.settled().first_lines, ElementsAre(1, 4, 1, 5));
  EXPECT_EQ(table.settled().num_rows, 18);
}

TEST_F(SettleTableTest, AColumnIsOfTextsWhereOneUnitHasSome) {
  std::string text = "a,b,c\n";
  for (int i = 0; i < 100; ++i) StrAppend(&text, i, ",", i, ",", i == 3 ? "007" : StrCat(i), "\n");
  for (int i = 0; i < 5; ++i) StrAppend(&text, "x", i, ",0,0\n");
  const WholeTable table({folder_.Write("t.csv", text)}, 200);
  EXPECT_THAT(table.settled().as_text, ElementsAre(0, 2));
  EXPECT_EQ(table.Column(0)[7], "7");
  EXPECT_EQ(table.Column(0)[103], "x3");
  EXPECT_EQ(table.Column(2)[3], "007");
  EXPECT_EQ(table.shard().LevelsOf(0).levels.size(), 105);
}

TEST_F(SettleTableTest, AColumnWithFewOtherValuesIsDoubtful) {
  std::string text = "a,b\n";
  for (int i = 0; i < 5000; ++i) {
    StrAppend(&text, i == 2500 || i == 4000 ? "warm" : StrCat(i % 90), ",\"\n\"\n");
  }
  const WholeTable table({folder_.Write("t.csv", text)}, 10000);
  EXPECT_THAT(table.settled().as_text, ElementsAre(1));
  ASSERT_EQ(table.settled().doubtful.size(), 1u);
  const DoubtfulColumn& doubtful = table.settled().doubtful[0];
  EXPECT_EQ(doubtful.column, 0);
  EXPECT_EQ(doubtful.num_values, 5000);
  EXPECT_EQ(doubtful.num_others, 2);
  const auto texts =
      table.shard().FindTexts({doubtful.unit, table.shard().report(doubtful.unit).began}, 0, 5);
  ASSERT_TRUE(texts.ok() && texts->size() == 1) << texts.status();
  EXPECT_EQ((*texts)[0].text, "warm");
  // A record has two lines, and the header one.
  EXPECT_EQ(table.settled().first_lines[doubtful.unit] + (*texts)[0].line, 2 + 2 * 2500);
}

TEST_F(SettleTableTest, AnEmptyTableHasNoRows) {
  const WholeTable table({folder_.Write("t.csv", "a,b\n")}, 10);
  EXPECT_EQ(table.settled().num_rows, 0);
  EXPECT_THAT(table.settled().as_text, IsEmpty());
}

TEST_F(SettleTableTest, ReportsThatDoNotFitAreAnError) {
  const std::vector<TableFile> files = {{"f.csv", 20, {}, false}};
  const std::vector<TableUnit> units = {{0, 0, 10}, {0, 10, 20}};
  UnitReport first, second;
  first.scan = ScanPart("a\n1\n2\n3\n4\n", std::nullopt, {});
  second.scan = ScanPart("5\n6\n7\n8\n9\n", 'x', {});
  second.began = TextState::kPlain;
  const auto settled = SettleTable(files, {}, units, {&first, &second});
  EXPECT_EQ(settled.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(Message(settled.status()), HasSubstr("'f.csv' was changed while"));
}

}  // namespace
}  // namespace tenon
