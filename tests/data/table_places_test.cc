// SPDX-License-Identifier: Apache-2.0
#include "data/table_places/table_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/strings.h"
#include "data/table_places/rejects_file.h"
#include "tests/data/sample_files.h"
#include "tests/data/whole_schema.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

/// A table that was read whole, in units of so many bytes.
class PlacedTable {
 public:
  PlacedTable(const std::vector<std::string>& paths, int64_t unit_bytes)
      : files_(FindTableFiles(paths).value()),
        units_(CutIntoUnits(files_, unit_bytes)),
        schema_(WholeSchema(files_)),
        shard_(files_, schema_, units_),
        settled_(ReadWholeTable(files_, units_, &shard_).value()),
        places_(files_, schema_, units_, settled_.first_lines) {}

  const TableSettlement& settled() const { return settled_; }
  const TableShard& shard() const { return shard_; }
  const TablePlaces& places() const { return places_; }
  TableShard::ReadUnit Unit(int64_t unit) const { return {unit, shard_.report(unit).began}; }
  Status CheckRejects(int64_t most) const {
    std::vector<const UnitReport*> reports;
    for (int64_t u = 0; u < shard_.num_units(); ++u) reports.push_back(&shard_.report(u));
    return tenon::CheckRejects(places_, reports, most);
  }

 private:
  const std::vector<TableFile> files_;
  const std::vector<TableUnit> units_;
  const TableSchema schema_;
  TableShard shard_;
  const TableSettlement settled_;
  const TablePlaces places_;
};

class TablePlacesTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
};

TEST_F(TablePlacesTest, AColumnWithAFewOtherValuesIsNamedWithTheirLinesAndTheFlagsThatHelp) {
  std::string text = "id,temp\n";
  for (int i = 0; i < 20000; ++i) {
    StrAppend(&text, i, ",", i == 18202 || i == 18300 ? "warm" : i == 18301 ? "it's" : "20", "\n");
  }
  const std::string path = folder_.Write("part-07.csv", text);
  for (const int64_t bytes : {200000, 50000}) {
    const PlacedTable table({path}, bytes);
    ASSERT_EQ(table.settled().doubtful.size(), 1u);
    const DoubtfulColumn& doubtful = table.settled().doubtful[0];
    const auto texts = table.shard().FindTexts(table.Unit(doubtful.unit), 1, 5);
    ASSERT_TRUE(texts.ok()) << texts.status();
    EXPECT_EQ(
        table.places().OfDoubtful(doubtful, *texts),
        StrCat(path, ":18,204: column 2 (temp): 'warm' is not a number\n  18202,warm\n", path,
               ":18,302: column 2 (temp): 'warm' is not a number\n  18300,warm\n", path,
               ":18,303: column 2 (temp): 'it\\'s' is not a number\n  18301,it\\'s\n",
               "3 of its 20,000 values are no numbers: --na 'NA' --na 'warm' --na 'it'\\''s' if "
               "they are missing, --types 'temp=category' if the column is one of categories"));
  }
}

TEST_F(TablePlacesTest, AValueIsFoundByItsRow) {
  std::string text = "a,b\n";
  for (int i = 0; i < 1000; ++i) StrAppend(&text, "\"x\n\",", i, "\n", i % 10 == 0 ? "bad\n" : "");
  const std::string path = folder_.Write("t.csv", text);
  const PlacedTable table({path}, 1000);
  int64_t unit = 0, row = 777;
  while (row >= table.shard().report(unit).num_rows) row -= table.shard().report(unit++).num_rows;
  const auto value = table.shard().FindRow(table.Unit(unit), 1, row);
  ASSERT_TRUE(value.ok()) << value.status();
  // The header, two lines a record, and the 78 bad ones before.
  EXPECT_EQ(table.places().OfValue(unit, 1, *value, "is not 0 or 1"),
            StrCat(path, ":1,634: column 2 (b): '777' is not 0 or 1\n  \\\"x\\n\\\",777"));
  EXPECT_EQ(table.shard().FindRow(table.Unit(unit), 1, 1000).status().code(),
            StatusCode::kOutOfRange);
}

TEST_F(TablePlacesTest, RejectedRecordsSayWhatIsWrong) {
  const std::string path = folder_.Write(
      "t.csv", StrCat("a,b\n1,2\n3\n\"4\"x,5\n6,", std::string("\0", 1), "\n7,8,9\n10,\"\n\n\n"));
  const PlacedTable table({path}, 1000);
  EXPECT_TRUE(table.CheckRejects(5).ok());
  const std::string nul = "\\000";
  EXPECT_EQ(
      Message(table.CheckRejects(4)),
      StrCat(path, ":3: found 1 field, wanted 2\n  3\n", path,
             ":4: column 1 (a): found more behind the closing quote, wanted the end of the field\n",
             "  \\\"4\\\"x,5\n", path, ":5: column 2 (b): found a byte 0, which text has not\n",
             "  6,", nul, "\n", path, ":6: found 3 fields, wanted 2\n  7,8,9\n", path,
             ":7: column 2 (b): a quote opens and none closes\n  10,\\\"\\n\\n\\n\n",
             "5 records are not as the others, wanted at most 4: --max_rejects leaves out more"));
}

TEST_F(TablePlacesTest, TheFirstFiveOfManyRejectsAreShown) {
  std::string text = "a,b\n";
  for (int i = 0; i < 3000; ++i) text += "bad\n1,2\n";
  const PlacedTable table({folder_.Write("t.csv", text)}, 1000000);
  const std::string message(Message(table.CheckRejects(0)));
  EXPECT_THAT(message, HasSubstr("t.csv:10: found 1 field"));
  EXPECT_THAT(message, ::testing::Not(HasSubstr("t.csv:12:")));
  EXPECT_THAT(message, HasSubstr("... 3,000 records are not as the others, wanted at most 0"));
  EXPECT_EQ(table.shard().report(0).rejected.size(), 1000u);
  EXPECT_EQ(table.shard().FindRejected(table.Unit(0))->size(), 3000u);
}

TEST_F(TablePlacesTest, TheFileOfRejectsIsATable) {
  const std::string a = folder_.Write("a.csv", "x,y\n1,2\n3\n");
  const std::string b = folder_.Write("b,.csv", "x,y\n1,\"2\n2\"\n\"3\"3,\"4\n\"\n5,6\n");
  for (const int64_t bytes : {5, 1000}) {
    const PlacedTable table({a, b}, bytes);
    const std::string path = folder_ / "rejects.csv";
    const auto file = RejectsFile::Create(path, table.places());
    ASSERT_TRUE(file.ok()) << file.status();
    for (int64_t u = 0; u < table.shard().num_units(); ++u) {
      const auto rejected = table.shard().FindRejected(table.Unit(u));
      ASSERT_TRUE(rejected.ok() && (*file)->Add(u, *rejected).ok());
    }
    ASSERT_TRUE((*file)->Close().ok());
    EXPECT_EQ(ContentOf(path),
              StrCat("file,line,byte,kind,fields,wanted,column,text\n", a, ",3,8,fields,1,2,,3\n\"",
                     b, "\",4,12,behind_quote,,,1,\"\"\"3\"\"3,\"\"4\n\"\"\"\n"));
  }
}

}  // namespace
}  // namespace tenon
