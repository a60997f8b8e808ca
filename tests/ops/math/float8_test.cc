// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "ops/math/float8.h"
#include "tests/testing/op_runner.h"

namespace tenon::testing {
namespace {

std::vector<uint8_t> Bytes(const Tensor& t) {
  const auto* const bytes = static_cast<const uint8_t*>(t.raw_data());
  return {bytes, bytes + t.num_elements()};
}

/// `values` as codes of `type`.
std::vector<uint8_t> Codes(const std::vector<float>& values, DType type, bool truncate = false) {
  return Bytes(RunOpOrDie("Cast", {Tensor::Vector<float>(values)},
                          {{"DstT", type}, {"Truncate", truncate}}));
}

Tensor AllCodes(DType type) {
  Tensor codes(type, Shape{256});
  auto* const bytes = static_cast<uint8_t*>(codes.raw_data());
  for (int i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(i);
  return codes;
}

/// What every code of `type` stands for.
std::vector<float> AllValues(DType type) {
  const Tensor values = RunOpOrDie("Cast", {AllCodes(type)}, {{"DstT", DType::kFloat}});
  return {values.data<float>(), values.data<float>() + 256};
}

class Float8Test : public ::testing::TestWithParam<DType> {};

TEST_P(Float8Test, EveryCodeSurvivesEveryWiderType) {
  const std::vector<float> values = AllValues(GetParam());
  const Tensor codes = AllCodes(GetParam());
  for (const DType wide : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16}) {
    const Tensor there = RunOpOrDie("Cast", {codes}, {{"DstT", wide}});
    const std::vector<uint8_t> back = Bytes(RunOpOrDie("Cast", {there}, {{"DstT", GetParam()}}));
    for (int i = 0; i < 256; ++i) {
      if (!std::isnan(values[i])) EXPECT_EQ(back[i], i) << values[i] << " by " << ToString(wide);
    }
  }
}

/// The oracle looks at all values there are, and takes the nearest; of two the one with an even
/// code.
TEST_P(Float8Test, NumbersGoToTheNearest) {
  const std::vector<float> all = AllValues(GetParam());
  std::vector<std::pair<float, uint8_t>> sizes;
  for (int i = 0; i < 128; ++i) {
    if (std::isfinite(all[i])) sizes.emplace_back(all[i], static_cast<uint8_t>(i));
  }
  std::vector<float> values;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    const float middle = (sizes[i].first + sizes[i + 1].first) / 2;
    for (const float v : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
      values.push_back(v);
    }
  }
  std::mt19937 random(1);
  std::lognormal_distribution<float> draw(0, 3);
  for (int i = 0; i < 1000; ++i) values.push_back(std::min(draw(random), sizes.back().first));
  const std::vector<uint8_t> found = Codes(values, GetParam());
  for (size_t i = 0; i < values.size(); ++i) {
    const double v = values[i];
    const auto nearest = std::min_element(sizes.begin(), sizes.end(), [&](auto a, auto b) {
      const double left = std::abs(a.first - v), right = std::abs(b.first - v);
      return left != right ? left < right : a.second % 2 < b.second % 2;
    });
    EXPECT_EQ(found[i], nearest->second) << values[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Float8Test,
                         ::testing::Values(DType::kFloat8E5M2, DType::kFloat8E4M3FN),
                         [](const auto& test) { return ToString(test.param); });

TEST(Float8Values, TheirEndsAreThoseOfTheFormats) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> ends = {57344, 61439, 61440, -inf, NAN, 0x1p-16f, 0x1p-17f, -0.0f};
  EXPECT_EQ(Codes(ends, DType::kFloat8E5M2),
            (std::vector<uint8_t>{0x7b, 0x7b, 0x7c, 0xfc, 0x7e, 1, 0, 0x80}));
  // There are no infinities.
  EXPECT_EQ(Codes({448, 464, 465, -inf, 0x1p-9f, 0x1p-10f}, DType::kFloat8E4M3FN),
            (std::vector<uint8_t>{0x7e, 0x7e, 0x7f, 0xff, 1, 0}));
  EXPECT_EQ(Codes({500, 127.5f}, DType::kFloat8E5M2, true), (std::vector<uint8_t>{95, 87}));
}

TEST(QuantisedCasts, AreThoseOfTheTypesThatHoldThem) {
  const Tensor x = Tensor::Vector<float>({-3, 300, 7.9f});
  const std::pair<DType, DType> types[] = {{DType::kQInt8, DType::kInt8},
                                           {DType::kQUInt8, DType::kUInt8},
                                           {DType::kQInt16, DType::kInt16},
                                           {DType::kQUInt16, DType::kUInt16},
                                           {DType::kQInt32, DType::kInt32}};
  for (const auto& [quantised, held] : types) {
    const Tensor a = RunOpOrDie("Cast", {x}, {{"DstT", quantised}});
    const Tensor b = RunOpOrDie("Cast", {x}, {{"DstT", held}});
    EXPECT_EQ(std::memcmp(a.raw_data(), b.raw_data(), b.num_bytes()), 0) << ToString(quantised);
    const Tensor back = RunOpOrDie("Cast", {a}, {{"DstT", DType::kDouble}});
    const Tensor wanted = RunOpOrDie("Cast", {b}, {{"DstT", DType::kDouble}});
    EXPECT_EQ(std::memcmp(back.raw_data(), wanted.raw_data(), wanted.num_bytes()), 0);
  }
}

}  // namespace
}  // namespace tenon::testing
