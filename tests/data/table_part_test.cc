// SPDX-License-Identifier: Apache-2.0
#include "data/table/table_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "core/base/strings.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ColumnPart ReadOne(std::string_view text, const TableFormat& format = {}, bool as_text = false) {
  TablePart part = ReadTablePart(text, format, 1, {{0, as_text}});
  EXPECT_THAT(part.bad, IsEmpty());
  return std::move(part.columns[0]);
}

TEST(TablePartTest, AColumnIsOfNumbersWhereAllValuesAre) {
  const ColumnPart numbers = ReadOne("1\n-2.5\n\"3\"\n 4 \n1e3\n.5\n6.\n+7\n");
  EXPECT_FALSE(numbers.is_text);
  EXPECT_THAT(numbers.numbers, ElementsAre(1, -2.5, 3, 4, 1000, 0.5, 6, 7));
  const ColumnPart texts = ReadOne("1\nx\n1\n-\n\"1\"\n");
  EXPECT_TRUE(texts.is_text);
  EXPECT_THAT(texts.codes, ElementsAre(0, 1, 0, 2, 0));
  EXPECT_EQ(texts.levels.text(2), "-");
  EXPECT_EQ(ReadOne("1\n2\n", {}, true).levels.size(), 2);
}

TEST(TablePartTest, MissingValuesAreCounted) {
  const ColumnPart numbers = ReadOne("1\nNA\n\"\"\nnan\n", {.missing = {"NA", "?"}});
  EXPECT_EQ(numbers.num_missing, 3);
  EXPECT_TRUE(std::isnan(numbers.numbers[1]) && std::isnan(numbers.numbers[3]));
  const ColumnPart texts = ReadOne("a\n?\nNA\nb\n", {.missing = {"NA", "?"}});
  EXPECT_THAT(texts.codes, ElementsAre(0, -1, -1, 1));
  EXPECT_EQ(texts.num_missing, 2);
}

TEST(TablePartTest, NumbersWithZerosBeforeThemAreSaid) {
  EXPECT_TRUE(ReadOne("12\n007\n").has_leading_zeros);
  EXPECT_FALSE(ReadOne("12\n0\n0.5\n-0.25\n\"0\"\n\"0.5\"\n 0 \n").has_leading_zeros);
  for (const char* code : {"\"007\"", " 007", "-007", "+01", "00000000000000000000001", "01e2"}) {
    EXPECT_TRUE(ReadOne(StrCat("12\n", code, "\n")).has_leading_zeros) << code;
  }
}

TEST(TablePartTest, AColumnThatTurnsOutToBeTextLateIsReadAgain) {
  std::string text;
  for (int i = 0; i < 200000; ++i) StrAppend(&text, i % 1000, ",", i, "\n");
  StrAppend(&text, "late,1\n");
  const TablePart part = ReadTablePart(text, {}, 2, {{0}, {1}});
  EXPECT_EQ(part.num_rows, 200001);
  ASSERT_TRUE(part.columns[0].is_text && !part.columns[1].is_text);
  EXPECT_EQ(part.columns[0].levels.size(), 1001);
  EXPECT_EQ(part.columns[1].numbers.size(), 200001u);
  for (int i = 0; i < 200000; ++i) ASSERT_EQ(part.columns[0].codes[i], i % 1000);
}

TEST(TablePartTest, NumbersAreThoseOfTheCLibrary) {
  std::mt19937_64 random(1);
  std::string text;
  std::vector<double> wanted;
  for (int i = 0; i < 20000; ++i) {
    std::string number = random() % 2 == 0 ? "-" : "";
    const int digits = static_cast<int>(random() % 18) + 1;
    const int point = static_cast<int>(random() % 20);
    for (int d = 0; d < digits; ++d) {
      if (d == point) number += '.';
      number += static_cast<char>('0' + random() % 10);
    }
    wanted.push_back(std::strtod(number.c_str(), nullptr));
    StrAppend(&text, number, "\n");
  }
  EXPECT_EQ(ReadOne(text).numbers, wanted);
}

TEST(TextLevelsTest, TextsHaveOneCodeEach) {
  TextLevels levels;
  std::mt19937 random(1);
  std::vector<std::string> seen;
  for (int i = 0; i < 20000; ++i) {
    std::string text(random() % 12, 'a');
    for (char& c : text) c = static_cast<char>("ab\0"[random() % 3]);
    const int32_t code = levels.Code(text);
    if (code == static_cast<int32_t>(seen.size())) seen.push_back(text);
    ASSERT_EQ(seen[code], text);
    ASSERT_EQ(levels.text(code), text);
  }
  EXPECT_EQ(levels.size(), static_cast<int32_t>(seen.size()));
}

}  // namespace
}  // namespace tenon
