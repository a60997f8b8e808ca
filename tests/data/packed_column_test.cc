// SPDX-License-Identifier: Apache-2.0
#include "data/table/packed_column.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace tenon {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

/// The bytes a value in which the numbers come back bit for bit.
int64_t BytesOf(const std::vector<double>& numbers) {
  const PackedColumn column = PackedColumn::OfNumbers(numbers);
  EXPECT_EQ(column.size(), static_cast<int64_t>(numbers.size()));
  std::vector<double> back(numbers.size());
  // In two pieces: a piece may begin anywhere.
  const int64_t half = column.size() / 2;
  column.CopyNumbers(0, half, back.data());
  column.CopyNumbers(half, column.size() - half, back.data() + half);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const bool same = std::bit_cast<uint64_t>(back[i]) == std::bit_cast<uint64_t>(numbers[i]);
    EXPECT_TRUE(same || (std::isnan(back[i]) && std::isnan(numbers[i]))) << numbers[i];
  }
  return column.bytes() / column.size();
}

TEST(PackedColumnTest, NumbersTakeTheNarrowestFormThatLosesNothing) {
  EXPECT_EQ(BytesOf({0, 1, kMissing, 127, -127}), 1);
  EXPECT_EQ(BytesOf({0, -128}), 2);
  EXPECT_EQ(BytesOf({0.1, 39.02, kMissing}), 2);
  EXPECT_EQ(BytesOf({1013.25, 0.1, 7}), 4);
  EXPECT_EQ(BytesOf({-2147483647.0, 5}), 4);
  EXPECT_EQ(BytesOf({-2147483648.0}), 8);
  EXPECT_EQ(BytesOf({2147483647.0, 0.5}), 8);
  EXPECT_EQ(BytesOf({0.0, -0.0}), 8);
  EXPECT_EQ(BytesOf({1.0 / 3, 1}), 8);
  EXPECT_EQ(BytesOf({1e300, std::numeric_limits<double>::infinity(), 5e-324}), 8);
  EXPECT_EQ(BytesOf({kMissing}), 1);
}

TEST(PackedColumnTest, RandomDecimalsComeBack) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 2000; ++run) {
    const auto decimals = static_cast<int>(random() % 9);
    const auto digits = static_cast<int>(random() % 12) + 1;
    std::vector<double> numbers;
    for (int i = 0; i < 50; ++i) {
      std::string text = random() % 2 == 0 ? "-" : "";
      for (int d = 0; d < digits; ++d) text += static_cast<char>('0' + random() % 10);
      text += '.';
      for (int d = 0; d < decimals; ++d) text += static_cast<char>('0' + random() % 10);
      numbers.push_back(random() % 20 == 0 ? kMissing : std::strtod(text.c_str(), nullptr));
    }
    BytesOf(numbers);
  }
}

TEST(PackedColumnTest, Codes) {
  for (const int32_t largest : {5, 127, 128, 32767, 32768, 1 << 30}) {
    const std::vector<int32_t> codes = {0, -1, largest, 1};
    const PackedColumn column = PackedColumn::OfCodes(codes);
    std::vector<int32_t> back(4);
    column.CopyCodes(0, 4, back.data());
    EXPECT_EQ(back, codes);
    EXPECT_EQ(column.bytes(), largest < 128 ? 4 : largest < 32768 ? 8 : 16);
  }
}

}  // namespace
}  // namespace tenon
