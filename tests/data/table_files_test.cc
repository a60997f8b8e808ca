// SPDX-License-Identifier: Apache-2.0
#include "data/table/table_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zstd.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "core/base/strings.h"
#include "data/table/unit_reader.h"
#include "tests/data/sample_files.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TableFilesTest : public ::testing::Test {
 protected:
  TableSchema SchemaOf(const std::vector<TableFile>& files, const TableFormat& format = {}) {
    TableSchema schema;
    schema.format = format;
    auto header = ReadTableHeader(files, format);
    EXPECT_TRUE(header.ok()) << header.status();
    if (header.ok()) schema.header = *std::move(header);
    for (size_t c = 0; c < schema.header.names.size(); ++c) {
      schema.columns.push_back({static_cast<int64_t>(c)});
    }
    return schema;
  }

  const TemporaryFolder folder_;
};

/// The rows of the whole table, "a|b" each, read in units of `bytes`, one after the other.
std::vector<std::string> ReadRows(const std::vector<TableFile>& files, TableSchema schema,
                                  int64_t bytes, std::vector<RejectedRecord>* rejected = nullptr) {
  for (WantedColumn& column : schema.columns) column.as_text = true;
  std::vector<std::string> rows;
  std::optional<TextState> state;
  int64_t file = -1;
  for (const TableUnit& unit : CutIntoUnits(files, bytes)) {
    if (unit.file != file) state = TextState::kFieldStart;
    file = unit.file;
    auto reader = UnitReader::Open(files[file], unit, state, schema);
    EXPECT_TRUE(reader.ok()) << reader.status();
    TablePart part;
    while ((*reader)->Next(&part).value()) {
      for (int64_t r = 0; r < part.num_rows; ++r) {
        std::string row;
        for (const ColumnPart& column : part.columns) {
          const int32_t code = column.codes[r];
          StrAppend(&row, row.empty() ? "" : "|", code < 0 ? "NA" : column.levels.text(code));
        }
        rows.push_back(row);
      }
    }
    if (rejected != nullptr) {
      for (RejectedRecord r : (*reader)->rejected()) {
        r.byte += unit.begin;
        rejected->push_back(std::move(r));
      }
    }
    state = (*reader)->scan().from[static_cast<int>(*state)]->end;
  }
  return rows;
}

TEST_F(TableFilesTest, FilesAreThoseOfThePatternsInOrder) {
  for (const char* name : {"b2.csv", "b10.csv", "a.csv", "c.txt"}) folder_.Write(name, "x\n");
  const auto files = FindTableFiles({folder_ / "b*.csv", folder_ / "a.csv"});
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 3u);
  EXPECT_EQ((*files)[0].path, folder_ / "b10.csv");
  EXPECT_EQ((*files)[1].path, folder_ / "b2.csv");
  EXPECT_EQ((*files)[2].path, folder_ / "a.csv");
  EXPECT_EQ((*files)[2].size, 2);
  EXPECT_EQ(Message(FindTableFiles({folder_ / "d*"}).status()),
            StrCat("no file matches '", folder_ / "d*", "'"));
  EXPECT_EQ(Message(FindTableFiles({folder_ / "d"}).status()),
            StrCat("there is no file '", folder_ / "d", "'"));
  folder_.Write("e[1].csv", "x\n");
  EXPECT_EQ(FindTableFiles({folder_ / "e[1].csv"}).value()[0].path, folder_ / "e[1].csv");
  EXPECT_THAT(Message(FindTableFiles({folder_ / "a.csv", folder_ / "*.csv"}).status()),
              HasSubstr("comes twice"));
  EXPECT_EQ(FindTableFiles({folder_.path()}).status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(TableFilesTest, UnitsCoverTheFiles) {
  const std::vector<TableFile> files = {
      {"a", 100, {}, false}, {"b", 0, {}, false}, {"c", 90, {}, true}};
  std::vector<std::string> units;
  for (const TableUnit& u : CutIntoUnits(files, 30)) {
    units.push_back(StrCat(u.file, ":", u.begin, "-", u.end));
  }
  EXPECT_THAT(units, ElementsAre("0:0-30", "0:30-60", "0:60-100", "2:0-90"));
}

TEST_F(TableFilesTest, EveryFileHasTheHeaderOfTheFirst) {
  const std::vector<std::string> paths = {folder_.Write("1.csv", "\n\"a\nb\",c\r\n1,2\r\n"),
                                          folder_.Write("2.csv", "\xef\xbb\xbf\"a\nb\",c\n3,4"),
                                          folder_.Write("3.csv", ""),
                                          folder_.Write("4.csv", "\"a\nb\",c")};
  const auto files = FindTableFiles(paths).value();
  const TableSchema schema = SchemaOf(files);
  EXPECT_THAT(schema.header.names, ElementsAre("a\nb", "c"));
  EXPECT_THAT(ReadRows(files, schema, 1000), ElementsAre("1|2", "3|4"));

  const auto other = FindTableFiles({paths[0], folder_.Write("5.csv", "c,a\n1,2\n")}).value();
  auto reader = UnitReader::Open(other[1], {1, 0, other[1].size}, {}, schema);
  TablePart part;
  EXPECT_EQ(Message((*reader)->Next(&part).status()),
            StrCat("'", other[1].path, R"(': found the first line 'c,a', wanted the header )",
                   R"('\"a\nb\",c' of ')", paths[0], "'"));
}

TEST_F(TableFilesTest, HeadersThatCannotBe) {
  const auto message = [&](const std::string& content) {
    const auto files = FindTableFiles({folder_.Write("f.csv", content)}).value();
    return std::string(Message(ReadTableHeader(files, {}).status()));
  };
  EXPECT_THAT(message(""), HasSubstr("is empty, wanted a first line with the names"));
  EXPECT_THAT(message("\n\r\n"), HasSubstr("is empty"));
  EXPECT_THAT(message("a,\"b\"c\n"), HasSubstr("the names of the columns cannot be read from"));
  EXPECT_THAT(message("\xff\xfe\x61"), HasSubstr("UTF-16"));
  TableHeader header;
  header.names = {"late", "month", "month"};
  EXPECT_EQ(FindColumn(header, "late").value(), 0);
  EXPECT_EQ(Message(FindColumn(header, "lat").status()),
            "there is no column 'lat'; did you mean 'late'?");
  EXPECT_EQ(Message(FindColumn(header, "month").status()),
            "there are two columns 'month', wanted one");
}

TEST_F(TableFilesTest, AHeaderBehindManyEmptyLinesIsAnError) {
  const auto files = FindTableFiles({folder_.Write("t.csv", "\n\n\n\n\na\n1\n")}).value();
  const TableSchema schema = SchemaOf(files);
  TablePart part;
  EXPECT_THAT(Message((*UnitReader::Open(files[0], {0, 0, 4}, {}, schema))->Next(&part).status()),
              HasSubstr("found 4 bytes of empty lines at the beginning, wanted the names"));
  EXPECT_THAT(ReadRows(files, schema, 100), ElementsAre("1"));
}

/// A table with line ends in quotes, in units of all sizes.
TEST_F(TableFilesTest, EveryRowIsInOneUnit) {
  std::mt19937 random(1);
  std::string text = "n,t\r\n";
  std::vector<std::string> wanted;
  for (int i = 0; i < 200; ++i) {
    std::string value;
    for (size_t k = random() % 6; k > 0; --k) value += "a\n,\""[random() % 4];
    std::string quoted;
    for (const char c : value) quoted += c == '"' ? "\"\"" : std::string(1, c);
    StrAppend(&text, i, ",\"", quoted, random() % 2 == 0 ? "\"\n" : "\"\r\n");
    wanted.push_back(StrCat(i, "|", value.empty() ? "NA" : value));
  }
  const auto files = FindTableFiles({folder_.Write("t.csv", text)}).value();
  const TableSchema schema = SchemaOf(files);
  for (const int64_t bytes : {1, 2, 3, 5, 7, 16, 64, 100, 1000, 100000}) {
    ASSERT_EQ(ReadRows(files, schema, bytes), wanted) << bytes;
  }
  auto zipped = MakeCompressor(OpenOutput(folder_ / "t.csv.gz").value(), Compression::kGzip);
  ASSERT_TRUE(zipped->Append(text).ok() && zipped->Close().ok());
  const auto compressed = FindTableFiles({folder_ / "t.csv.gz"}).value();
  EXPECT_TRUE(compressed[0].compressed);
  EXPECT_EQ(ReadRows(compressed, schema, 10), wanted);
}

TEST_F(TableFilesTest, CompressedFilesAreFoundByContentAndMistakesInThemAreNamed) {
  const std::string text = "a,b\n1,2\n3,4\n";
  std::string frame(1000, ' ');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), text.data(), text.size(), 3));
  const auto rows = [&](const std::string& content) -> StatusOr<std::vector<std::string>> {
    TENON_ASSIGN_OR_RETURN(const auto files, FindTableFiles({folder_.Write("t.csv", content)}));
    EXPECT_TRUE(files[0].compressed);
    TENON_RETURN_IF_ERROR(ReadTableHeader(files, {}).status());
    return ReadRows(files, SchemaOf(files), 3);
  };
  EXPECT_THAT(rows(frame).value(), ElementsAre("1|2", "3|4"));
  std::string skipped("\x50\x2a\x4d\x18\0\0\0\0", 8);
  EXPECT_THAT(rows(skipped + frame).value(), ElementsAre("1|2", "3|4"));
  EXPECT_EQ(Message(rows(frame.substr(0, 15)).status()),
            StrCat("'", folder_ / "t.csv", "': the compressed data is cut short at byte 15"));
  const auto zipped = [&](const std::string& name) {
    auto file = MakeCompressor(OpenOutput(folder_ / name).value(), Compression::kGzip);
    EXPECT_TRUE(file->Append(text).ok() && file->Close().ok());
    return ContentOf(folder_ / name);
  };
  std::string gzip = zipped("g");
  EXPECT_THAT(rows(gzip).value(), ElementsAre("1|2", "3|4"));
  EXPECT_EQ(Message(rows(gzip.substr(0, 15)).status()),
            StrCat("'", folder_ / "t.csv", "': the compressed data is cut short at byte 15"));
  gzip[2] = 'x';
  EXPECT_THAT(Message(rows(gzip).status()), HasSubstr("is damaged at byte "));
}

TEST_F(TableFilesTest, TheStandardInputIsATableOfItsOwn) {
  EXPECT_EQ(
      Message(FindTableFiles({folder_.Write("t.csv", "a\n"), "-"}).status()),
      "found '-', the standard input, among 2 files, wanted it alone: it is a table of its own");
  std::string text = "a,b\n";
  std::vector<std::string> wanted;
  for (int i = 0; i < 300; ++i) {
    StrAppend(&text, i, ",\"x\n,\"\n");
    wanted.push_back(StrCat(i, "|x\n,"));
  }
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(ends[1]);
  const int before = dup(STDIN_FILENO);
  dup2(ends[0], STDIN_FILENO);
  close(ends[0]);
  const auto files = FindTableFiles({"-"});
  dup2(before, STDIN_FILENO);
  close(before);
  ASSERT_TRUE(files.ok()) << files.status();
  const TableSchema schema = SchemaOf(*files);
  for (const int64_t bytes : {7, 100, 100000}) {
    EXPECT_EQ(ReadRows(*files, schema, bytes), wanted);
  }
  // Who may not reach all files does not reach this one.
  const FileContext none =
      FileContext::Of(FileAccess{FileAccess::Kind::kNone, ""}, nullptr).value();
  EXPECT_EQ(FindTableFiles({"-"}, none).status().code(), StatusCode::kNotFound);
}

TEST_F(TableFilesTest, RejectedRecordsHaveTheirPlaces) {
  const std::string text = "a,b\n1,2\n\n\"3\n3\",4\n5\n6,7\n8,9,10\n";
  const auto files = FindTableFiles({folder_.Write("t.csv", text)}).value();
  const TableSchema schema = SchemaOf(files);
  for (const int64_t bytes : {4, 9, 1000}) {
    std::vector<RejectedRecord> rejected;
    EXPECT_THAT(ReadRows(files, schema, bytes, &rejected), ElementsAre("1|2", "3\n3|4", "6|7"));
    ASSERT_EQ(rejected.size(), 2u);
    EXPECT_EQ(rejected[0].text, "5");
    EXPECT_EQ(rejected[0].byte, static_cast<int64_t>(text.find("5\n")));
    EXPECT_EQ(rejected[1].text, "8,9,10");
    EXPECT_EQ(rejected[1].fields, 3);
    if (bytes == 1000) {
      EXPECT_EQ(rejected[0].line, 5);
      EXPECT_EQ(rejected[1].line, 7);
    }
  }
}

TEST_F(TableFilesTest, AFileThatChangesIsNamed) {
  const std::string path = folder_.Write("t.csv", "a\n1\n");
  const auto files = FindTableFiles({path}).value();
  const TableSchema schema = SchemaOf(files);
  folder_.Write("t.csv", "a\n1\n2\n");
  const auto status = UnitReader::Open(files[0], {0, 0, 4}, {}, schema).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), HasSubstr("was changed while the table was read"));
}

}  // namespace
}  // namespace tenon
