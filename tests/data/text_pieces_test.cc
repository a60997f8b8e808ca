// SPDX-License-Identifier: Apache-2.0
#include "data/table/text_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace tenon {
namespace {

std::unique_ptr<TextPieces> PiecesOf(std::string_view text, size_t begin, const TableFormat& format,
                                     std::optional<TextState> state = std::nullopt) {
  const auto before = begin == 0 ? std::nullopt : std::optional(text[begin - 1]);
  return std::make_unique<TextPieces>(MakeSource(text.substr(begin), Compression::kNone), before,
                                      state, format);
}

/// Texts of few letters, in which quotes, delimiters and ends of lines meet in all ways.
std::string RandomText(std::mt19937* random, size_t longest) {
  const std::string letters = "aa,,\"\"\n\r";
  std::string text((*random)() % longest, ' ');
  for (char& c : text) c = letters[(*random)() % letters.size()];
  return text;
}

/// Every byte of the text is in the records of one piece.
TEST(TextPiecesTest, UnitsHaveEveryRecordOnceWhereTheirStatesAreKnown) {
  std::mt19937 random(1);
  for (const bool quotes : {true, false}) {
    const TableFormat format = {.quotes = quotes};
    for (int run = 0; run < 3000; ++run) {
      const std::string text = RandomText(&random, 60);
      const size_t unit = random() % 12 + 1;
      std::string together;
      std::optional<TextState> state;
      for (size_t begin = 0; begin < text.size(); begin += unit) {
        auto pieces = PiecesOf(text, begin, format, state);
        const TextState before = pieces->state();
        TextPiece piece;
        ASSERT_TRUE(pieces->Next(unit, &piece).value());
        if (!piece.records.empty()) {
          EXPECT_EQ(begin + piece.begin, together.size()) << text;
          EXPECT_EQ(piece.lines_before,
                    std::count(text.begin() + begin, text.begin() + begin + piece.begin, '\n'));
        }
        together += piece.records;
        state = piece.scan.from[static_cast<int>(before)]->end;
      }
      ASSERT_EQ(together, text);
    }
  }
}

TEST(TextPiecesTest, AStreamIsCutWithoutBeingToldStates) {
  std::mt19937 random(2);
  for (int run = 0; run < 3000; ++run) {
    const std::string text = RandomText(&random, 60);
    const TableFormat format;
    auto pieces = PiecesOf(text, 0, format);
    std::string together;
    TextPiece piece;
    while (pieces->Next(random() % 9 + 1, &piece).value()) {
      if (!piece.records.empty()) {
        EXPECT_EQ(piece.begin, static_cast<int64_t>(together.size()));
        EXPECT_EQ(piece.lines_before, std::count(together.begin(), together.end(), '\n'));
      }
      together += piece.records;
    }
    ASSERT_EQ(together, text);
  }
}

TEST(TextPiecesTest, ALongRecordIsReadToItsEnd) {
  const TableFormat format;
  const std::string text =
      "a,\"" + std::string(300000, 'x') + "\n" + std::string(300000, 'y') + "\"\nb,c\n";
  TextPiece piece;
  auto pieces = PiecesOf(text, 0, format);
  ASSERT_TRUE(pieces->Next(10, &piece).value());
  EXPECT_EQ(piece.records.size(), text.size() - 4);
}

TEST(TextPiecesTest, ARecordWithoutAnEndIsGivenUpAndTheTextGoesOnBehindIt) {
  const TableFormat format;
  const std::string text =
      "a\n\"" + std::string(2 * TextPieces::kLongestRecord, 'x') + "\"\nb\nc\n";
  auto pieces = PiecesOf(text, 0, format);
  TextPiece piece;
  ASSERT_TRUE(pieces->Next(10, &piece).value());
  EXPECT_GE(piece.records.size(), TextPieces::kLongestRecord);
  EXPECT_LT(piece.records.size(), text.size());
  ASSERT_TRUE(pieces->Next(text.size(), &piece).value());
  EXPECT_EQ(piece.records, "b\nc\n");
  EXPECT_EQ(piece.lines_before, 2);
}

TEST(TextPiecesTest, TheMarkOfUtf8IsPassedOver) {
  const TableFormat format;
  TextPiece piece;
  auto pieces = PiecesOf("\xef\xbb\xbf\"a\nb\"\nc", 0, format);
  ASSERT_TRUE(pieces->Next(100, &piece).value());
  EXPECT_EQ(piece.records, "\"a\nb\"\nc");
  EXPECT_EQ(piece.begin, 3);
  EXPECT_FALSE(PiecesOf("\xef\xbb\xbf", 0, format)->Next(100, &piece).value());
  EXPECT_EQ(Message(PiecesOf("\xff\xfe\x61", 0, format)->Next(100, &piece).status()),
            "the text is in UTF-16, wanted UTF-8");
}

/// The mark is within the unit: the next one begins where this one ends.
TEST(TextPiecesTest, TheMarkOfUtf8CountsAsBytes) {
  const TableFormat format;
  TextPiece piece;
  auto pieces = PiecesOf(
      "\xef\xbb\xbf"
      "a\nb\nc\n",
      0, format);
  ASSERT_TRUE(pieces->Next(5, &piece).value());
  EXPECT_EQ(piece.records, "a\n");
}

TEST(TextPiecesTest, AStateThatCannotBeIsAnError) {
  const TableFormat format;
  TextPiece piece;
  auto pieces = PiecesOf("a\nb\nc\n", 2, format, TextState::kPlain);
  EXPECT_EQ(pieces->Next(3, &piece).status().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tenon
