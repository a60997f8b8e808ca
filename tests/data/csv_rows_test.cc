// SPDX-License-Identifier: Apache-2.0
#include "data/csv/csv_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/files/byte_stream.h"
#include "tests/data/sample_files.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

class CsvRowsTest : public ::testing::Test {
 protected:
  /// All rows as text, a line each, "a|b"; then the mistake.
  std::string Read(const std::vector<std::string>& paths, const std::vector<CsvColumn>& columns,
                   const CsvOptions& options = {}) {
    auto rows = ReadCsv(paths, columns, options);
    if (!rows.ok()) return std::string(Message(rows.status()));
    std::string text;
    RowBatch batch;
    while (true) {
      const StatusOr<bool> found = (*rows)->Next(1000, &batch);
      if (!found.ok()) {
        EXPECT_EQ((*rows)->Next(1000, &batch).status(), found.status());
        return text + std::string(Message(found.status()));
      }
      if (!*found) return text;
      for (int64_t i = 0; i < batch.num_rows(); ++i) {
        for (size_t c = 0; c < batch.columns.size(); ++c) {
          StrAppend(&text, c > 0 ? "|" : "", TextOf(batch.columns[c], i));
        }
        text += "\n";
      }
    }
  }
  std::string Read(const std::string& content, const std::vector<CsvColumn>& columns,
                   const CsvOptions& options = {}) {
    return Read(std::vector<std::string>{folder_.Write("f.csv", content)}, columns, options);
  }
  static std::string TextOf(const Tensor& column, int64_t i) {
    switch (column.dtype()) {
      case DType::kFloat:
        return StrCat(column.data<float>()[i]);
      case DType::kDouble:
        return StrCat(column.data<double>()[i]);
      case DType::kInt32:
        return StrCat(column.data<int32_t>()[i]);
      case DType::kInt64:
        return StrCat(column.data<int64_t>()[i]);
      case DType::kBool:
        return column.data<bool>()[i] ? "true" : "false";
      default:
        return std::string(std::string_view(column.data<TString>()[i]));
    }
  }

  const TemporaryFolder folder_;
  const CsvColumn x_{"x", DType::kFloat, {}}, name_{"name", DType::kString, {}};
};

TEST_F(CsvRowsTest, ColumnsAreFoundByTheirNamesInAnyOrder) {
  const std::string file =
      "name,i,x,big,d,yes\nann,1,0.5,5000000000,1e-3,TRUE\nbob,-2,1e3,+7,.5,0\n";
  const std::vector<CsvColumn> columns = {x_,
                                          name_,
                                          {"yes", DType::kBool, {}},
                                          {"i", DType::kInt32, {}},
                                          {"big", DType::kInt64, {}},
                                          {"d", DType::kDouble, {}}};
  EXPECT_EQ(Read(file, columns), "0.5|ann|true|1|5000000000|0.001\n1000|bob|false|-2|7|0.5\n");
  EXPECT_EQ(Read(file, {name_}), "ann\nbob\n");
  const std::string other = folder_.Write("other.csv", "x , name\n3,\"eve\"\n");
  EXPECT_EQ(
      Read(std::vector<std::string>{folder_.Write("f.csv", "name,x\nann,1\n"), other}, {name_, x_}),
      "ann|1\neve|3\n");
}

TEST_F(CsvRowsTest, WithoutAHeaderColumnsAreThoseOfTheFile) {
  EXPECT_EQ(Read("1,a\n2,b\n", {x_, name_}, {.header = false}), "1|a\n2|b\n");
  EXPECT_EQ(Read("", {x_, name_}, {.header = false}), "");
  EXPECT_EQ(Read("1;a", {x_, name_}, {.header = false, .delimiter = ';'}), "1|a\n");
}

TEST_F(CsvRowsTest, FieldsInQuotesHoldDelimitersQuotesAndLines) {
  EXPECT_EQ(Read("x,name\r\n1,\"a,\"\"b\"\"\r\nc\"\r\n\r\n\"2\",\"\"\r\n3,last", {x_, name_}),
            "1|a,\"b\"\r\nc\n2|\n3|last\n");
  EXPECT_EQ(Read("x,name\n1,it's \n", {x_, name_}, {.quotes = false}), "1|it's \n");
  EXPECT_EQ(Read("x,name\n1,\"a\"b\n", {x_, name_}, {.quotes = false}), "1|\"a\"b\n");
}

TEST_F(CsvRowsTest, AByteOrderMarkIsPassedOver) {
  EXPECT_EQ(Read("\xef\xbb\xbfx,name\n1,a\n", {x_}), "1\n");
  EXPECT_THAT(Read(std::string("\xff\xfex\0", 4), {x_}),
              HasSubstr("is text in UTF-16, wanted UTF-8"));
}

TEST_F(CsvRowsTest, MissingFieldsHaveTheirDefaults) {
  const CsvColumn with_default{"x", DType::kFloat, Tensor::Scalar(-1.0f)};
  const CsvColumn text{"name", DType::kString, Tensor::Scalar("nobody")};
  EXPECT_EQ(Read("x,name\n,\nNA,NA\n  ,a\n2,b\n", {with_default, text}, {.not_there = "NA"}),
            "-1|nobody\n-1|nobody\n-1|a\n2|b\n");
  EXPECT_EQ(Read("x,name\n1,\n1,NA\n", {name_}, {.not_there = "NA"}), "\n\n");
  EXPECT_THAT(Read("x,name\n1,a\n,b\n", {x_}),
              HasSubstr("f.csv', line 3: column 'x': found no value, wanted float"));
}

TEST_F(CsvRowsTest, NumbersAreDecimalAndWhole) {
  EXPECT_EQ(Read("x\n inf\n-Infinity\nNaN\n1e999\n 0.1000000000000000055511151231257827 \n", {x_}),
            "inf\n-inf\nnan\ninf\n0.1\n");
  for (const char* field : {"0x10", "1_000", "1,5", "1.5.", "abc", "1e", "--1", "+-1", "1 2"}) {
    EXPECT_THAT(Read(StrCat("x\n1\n\"", field, "\"\n"), {x_}),
                HasSubstr(StrCat("line 3: column 'x': found '", field, "', wanted float")))
        << field;
  }
  for (const char* field : {"1.0", "2147483648", "1e3", "x"}) {
    EXPECT_THAT(Read(StrCat("x\n", field, "\n"), {{"x", DType::kInt32, {}}}),
                HasSubstr(StrCat("line 2: column 'x': found '", field, "', wanted int32")));
  }
  EXPECT_THAT(Read("x\nyes\n", {{"x", DType::kBool, {}}}), HasSubstr("found 'yes', wanted bool"));
}

TEST_F(CsvRowsTest, MistakesNameFileLineFoundAndWanted) {
  const std::vector<CsvColumn> both = {x_, name_};
  EXPECT_THAT(Read("x,name\n1,a\n2\n3,c\n", both),
              AllOf(HasSubstr("1|a\n"), HasSubstr("line 3: found 1 fields, wanted 2")));
  EXPECT_THAT(Read("x,name\n1,a,b\n", both), HasSubstr("line 2: found 3 fields, wanted 2"));
  EXPECT_THAT(Read("1,a,b\n", both, {.header = false}), HasSubstr("found 3 fields, wanted 2"));
  EXPECT_THAT(Read("x,name\n1,a\n2,\"b\nc,d\n", both),
              HasSubstr("line 3: field 2 begins with a quote that is not closed"));
  EXPECT_THAT(Read("x,name\n1,\"a\"b\n", both), HasSubstr("field 2 goes on behind its closing"));
  EXPECT_THAT(Read("x,name\n1,a\"b\n", both), HasSubstr("line 2: field 2 holds a quote"));
  EXPECT_THAT(Read("x,nam\n", both), HasSubstr("has no column 'name'; it has x, nam"));
  EXPECT_THAT(Read("x,name,x\n", both), HasSubstr("has two columns 'x'"));
  EXPECT_THAT(Read("", both), HasSubstr("is empty, wanted a first line"));
  EXPECT_THAT(Read(std::vector<std::string>{folder_ / "none.csv", folder_ / "f.csv"}, both),
              HasSubstr("none.csv"));
  const std::string three_lines = "x,name\n1,\"a\nb\nc\"\nz,d\n";
  EXPECT_THAT(Read(three_lines, both), HasSubstr("line 5: column 'x': found 'z'"));
}

TEST_F(CsvRowsTest, WhatCannotBeAColumnIsRefusedBeforeFilesAre) {
  const std::vector<std::string> none = {"none.csv"};
  EXPECT_THAT(Read(none, {}), HasSubstr("need a column"));
  EXPECT_THAT(Read(none, {{"x", DType::kUInt8, {}}}), HasSubstr("is uint8, wanted float"));
  EXPECT_THAT(Read(none, {x_, x_}), HasSubstr("wanted twice"));
  EXPECT_THAT(Read(none, {{"x", DType::kFloat, Tensor::Scalar(1)}}), HasSubstr("wanted one float"));
  EXPECT_THAT(Read(none, {x_}, {.delimiter = '"'}), HasSubstr("cannot be the delimiter"));
}

TEST_F(CsvRowsTest, RowsKnowTheirLines) {
  const CsvOptions options = {.line_column = "line"};
  EXPECT_EQ(Read("x,name\n1,a\n\n2,\"b\nb\"\n3,c\n", {x_, name_}, options),
            "1|a|2\n2|b\nb|4\n3|c|6\n");
  EXPECT_THAT(Read("x\n1\n", {x_}, {.line_column = "x"}),
              HasSubstr("is called as the column of line numbers"));
}

TEST_F(CsvRowsTest, NamesAreReadAlone) {
  const auto names = [this](const std::string& content, const CsvOptions& options = {}) {
    return ReadCsvNames(folder_.Write("f.csv", content), options);
  };
  EXPECT_EQ(*names("a, b ,\"c,d\"\n1,2\n"), (std::vector<std::string>{"a", "b", "c,d"}));
  EXPECT_EQ(*names("a\t\"b\n", {.delimiter = '\t', .quotes = false}),
            (std::vector<std::string>{"a", "\"b"}));
  EXPECT_THAT(std::string(Message(names("").status())), HasSubstr("f.csv' is empty"));
  EXPECT_THAT(std::string(Message(names("a,b\"\n").status())), HasSubstr("wrong quotes"));
  EXPECT_THAT(std::string(Message(names("a\n", {.delimiter = '"'}).status())),
              HasSubstr("cannot be the delimiter"));
  EXPECT_EQ(ReadCsvNames(folder_ / "none").status().code(), StatusCode::kNotFound);
}

TEST_F(CsvRowsTest, LargeFilesAreReadInBlocksAndAcrossTheirBorders) {
  std::string content = "i,name\n", expected;
  for (int i = 0; i < 100000; ++i) {
    const std::string text(i % 37, static_cast<char>('a' + i % 26));
    StrAppend(&content, i, i % 5 == 0 ? ",\"" : ",", text, i % 5 == 0 ? "\n\"\n" : "\n");
    StrAppend(&expected, i, "|", text, i % 5 == 0 ? "\n" : "", "\n");
  }
  content += "7," + std::string(3 << 20, 'z') + "\n";  // a field of several blocks
  StrAppend(&expected, "7|", std::string(3 << 20, 'z'), "\n");
  EXPECT_EQ(Read(content, {{"i", DType::kInt64, {}}, name_}), expected);
  content += "oops,\n";
  EXPECT_THAT(Read(content, {{"i", DType::kInt64, {}}, name_}),
              HasSubstr("line 120003: column 'i': found 'oops', wanted int64"));
}

TEST_F(CsvRowsTest, ATruncatedGzipFileIsDataLoss) {
  auto file = OpenOutput(folder_ / "whole.gz");
  auto gzip = MakeCompressor(*std::move(file), Compression::kGzip);
  std::string content = "x\n";
  for (int i = 0; i < 1000; ++i) StrAppend(&content, i * 7919 % 1000, "\n");
  ASSERT_TRUE(gzip->Append(content).ok() && gzip->Close().ok());
  const std::string bytes = *ReadFileToString(folder_ / "whole.gz");
  EXPECT_THAT(Read(std::vector<std::string>{folder_ / "whole.gz"}, {x_}),
              HasSubstr("\n919\n838\n"));
  const std::string cut = folder_.Write("cut.gz", bytes.substr(0, bytes.size() / 2));
  const auto rows = ReadCsv({cut}, {x_});
  RowBatch batch;
  StatusOr<bool> found = true;
  while (found.ok() && *found) found = (*rows)->Next(1000, &batch);
  EXPECT_EQ(found.status().code(), StatusCode::kDataLoss) << found.status();
  EXPECT_THAT(std::string(Message(found.status())), HasSubstr("cut.gz"));
}

}  // namespace
}  // namespace tenon
