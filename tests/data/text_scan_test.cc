// SPDX-License-Identifier: Apache-2.0
#include "data/table/text_scan.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace tenon {
namespace {

/// The places where records begin, byte by byte from the beginning, and the last state.
struct WholeScan {
  WholeScan(std::string_view text, const TableFormat& format) {
    begins.push_back(0);
    for (size_t i = 0; i < text.size(); ++i) {
      states.push_back(state);
      const bool ends = text[i] == '\n' && state != TextState::kQuoted;
      state = NextState(state, text[i], format);
      if (ends) begins.push_back(i + 1);
    }
    states.push_back(state);
  }
  std::vector<size_t> begins;
  std::vector<TextState> states;  // before each byte, and at the end
  TextState state = TextState::kFieldStart;
};

void ExpectPartsAgree(std::string_view text, const TableFormat& format, size_t begin, size_t end) {
  const WholeScan whole(text, format);
  const std::string_view part = text.substr(begin, end - begin);
  const PartScan scan =
      ScanPart(part, begin == 0 ? std::nullopt : std::optional(text[begin - 1]), format);
  const auto& way = scan.from[static_cast<int>(whole.states[begin])];
  ASSERT_TRUE(way.has_value()) << begin;
  EXPECT_EQ(way->end, whole.states[end]) << begin << " to " << end;
  int64_t first = -1;
  for (const size_t b : whole.begins) {
    if (b >= begin && b <= end && first < 0) first = static_cast<int64_t>(b - begin);
  }
  EXPECT_EQ(way->first_record, first) << begin << " to " << end;
  EXPECT_EQ(scan.lines, std::count(part.begin(), part.end(), '\n'));
}

TEST(TextScanTest, EveryPartKnowsItsRecordsOnceItsBeginningIsKnown) {
  std::mt19937 random(1);
  const std::string letters = "aa,,\"\"\n\r";
  for (const bool quotes : {true, false}) {
    const TableFormat format = {.quotes = quotes};
    for (int run = 0; run < 2000; ++run) {
      std::string text(random() % 24, ' ');
      for (char& c : text) c = letters[random() % letters.size()];
      for (size_t begin = 0; begin <= text.size(); ++begin) {
        for (size_t end = begin; end <= text.size(); ++end) {
          ASSERT_NO_FATAL_FAILURE(ExpectPartsAgree(text, format, begin, end));
          if (HasFailure()) FAIL() << '\'' << text << '\'';
        }
      }
    }
  }
}

TEST(TextScanTest, LongStretchesWithoutQuotesAreScannedAsByteByByte) {
  std::mt19937 random(2);
  const TableFormat format;
  for (int run = 0; run < 300; ++run) {
    std::string text;
    while (text.size() < 600) {
      text += std::string(random() % 100, 'a');
      text += ",\n\"\"\"a"[random() % 6];
    }
    for (int i = 0; i < 20; ++i) {
      const size_t begin = random() % text.size();
      const size_t end = begin + random() % (text.size() - begin);
      ASSERT_NO_FATAL_FAILURE(ExpectPartsAgree(text, format, begin, end));
    }
  }
}

}  // namespace
}  // namespace tenon
