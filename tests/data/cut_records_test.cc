// SPDX-License-Identifier: Apache-2.0
#include "data/table/cut_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/base/strings.h"
#include "data/table/text_scan.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// The records as text, "a|b" each.
std::vector<std::string> Cut(std::string_view text, int64_t columns, std::vector<BadRecord>* bad,
                             const TableFormat& format = {}) {
  RecordCutter cutter(text, format, columns);
  std::vector<std::string> records;
  std::string unquoted;
  while (cutter.Next(3, bad)) {
    for (int64_t r = 0; r < cutter.num_records(); ++r) {
      std::string record;
      for (int64_t c = 0; c < columns; ++c) {
        const std::string_view field = cutter.Field(r, c);
        StrAppend(&record, c > 0 ? "|" : "", FieldText(field, format.quotes, &unquoted));
      }
      records.push_back(record);
    }
  }
  return records;
}
std::vector<std::string> CutGood(std::string_view text, int64_t columns,
                                 const TableFormat& format = {}) {
  std::vector<BadRecord> bad;
  auto records = Cut(text, columns, &bad, format);
  EXPECT_THAT(bad, IsEmpty()) << text;
  return records;
}

TEST(RecordCutterTest, FieldsAndRecords) {
  EXPECT_THAT(CutGood("a,b\nc,\n,\n", 2), ElementsAre("a|b", "c|", "|"));
  EXPECT_THAT(CutGood("a,b\r\n\r\n\nc,d", 2), ElementsAre("a|b", "c|d"));
  EXPECT_THAT(CutGood("a\tb c", 2, {.delimiter = '\t'}), ElementsAre("a|b c"));
  EXPECT_THAT(CutGood("", 2), IsEmpty());
  EXPECT_THAT(CutGood("x", 1), ElementsAre("x"));
}

TEST(RecordCutterTest, Quotes) {
  EXPECT_THAT(CutGood("\"a,b\",\"c\"\"d\"\n", 2), ElementsAre("a,b|c\"d"));
  EXPECT_THAT(CutGood("\"a\r\nb\",\"\"\r\n\"\"\"\",x", 2), ElementsAre("a\r\nb|", "\"|x"));
  EXPECT_THAT(CutGood("5\" pipe,a\"\"b\n", 2), ElementsAre("5\" pipe|a\"\"b"));
  EXPECT_THAT(CutGood("\"a,\"b\n", 2, {.quotes = false}), ElementsAre("\"a|\"b"));
}

TEST(RecordCutterTest, BadRecordsAreLeftOutWithTheirPlace) {
  using Kind = BadRecord::Kind;
  const auto one = [](std::string_view text, Kind kind, std::string_view record, int64_t fields) {
    std::vector<BadRecord> bad;
    EXPECT_THAT(Cut(text, 2, &bad), ElementsAre("a|b", "c|d")) << text;
    ASSERT_EQ(bad.size(), 1u) << text;
    EXPECT_EQ(bad[0].kind, kind) << text;
    EXPECT_EQ(text.substr(bad[0].begin, bad[0].end - bad[0].begin), record);
    EXPECT_EQ(bad[0].fields, fields) << text;
  };
  one("a,b\nx\r\nc,d\n", Kind::kFields, "x", 1);
  one("a,b\nx,y,z\nc,d", Kind::kFields, "x,y,z", 3);
  one("a,b\n\"x\"y,z\nc,d", Kind::kBehindQuote, "\"x\"y,z", 1);
  one("a,b\nc,d\nx,\"y\nz", Kind::kOpenQuote, "x,\"y\nz", 2);
  one(std::string_view("a,b\nx,\0\nc,d", 11), Kind::kNul, std::string_view("x,\0", 3), 2);
  one(std::string_view("a,b\nx,\"\0\"\nc,d", 13), Kind::kNul, std::string_view("x,\"\0\"", 5), 2);
  const std::string field(RecordCutter::kLongestField + 1, 'x');
  one(StrCat("a,b\n", field, ",y\nc,d"), Kind::kLongField, StrCat(field, ",y"), 1);
}

TEST(RecordCutterTest, RecordsAreThoseOfTheScan) {
  std::mt19937 random(3);
  const std::string letters = "aaaaaaaaaaaaaaaaa,,,,,\"\"\n\n\r";
  const TableFormat format;
  for (int run = 0; run < 20000; ++run) {
    std::string text(random() % 200, ' ');
    for (char& c : text) c = letters[random() % letters.size()];
    std::vector<std::string> wanted;  // records as they stand there
    TextState state = TextState::kFieldStart;
    size_t begin = 0;
    for (size_t i = 0; i <= text.size(); ++i) {
      const bool ends = i == text.size() || (text[i] == '\n' && state != TextState::kQuoted);
      if (i < text.size()) state = NextState(state, text[i], format);
      if (!ends) continue;
      std::string record = text.substr(begin, i - begin);
      if (record.ends_with('\r')) record.pop_back();
      if (!record.empty()) wanted.push_back(record);
      begin = i + 1;
    }
    std::vector<std::string> found;
    RecordCutter cutter(text, format, 2);
    std::vector<BadRecord> bad;
    const size_t bytes = random() % 100 + 1;
    for (size_t next_bad = 0; cutter.Next(bytes, &bad);) {
      int64_t good = 0;
      while (good < cutter.num_records() || next_bad < bad.size()) {
        const bool is_good = good < cutter.num_records() &&
                             (next_bad == bad.size() || cutter.begin(good) < bad[next_bad].begin);
        if (is_good) {
          found.push_back(StrCat(cutter.Field(good, 0), ",", cutter.Field(good, 1)));
          ++good;
        } else {
          const BadRecord& record = bad[next_bad++];
          found.push_back(text.substr(record.begin, record.end - record.begin));
        }
      }
    }
    ASSERT_EQ(found, wanted) << '\'' << text << '\'';
  }
}

}  // namespace
}  // namespace tenon
