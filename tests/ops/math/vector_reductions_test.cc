// SPDX-License-Identifier: Apache-2.0
#include "ops/math/vector_reductions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tenon {
namespace {

template <typename T>
class VectorReductionsTest : public ::testing::Test {
 protected:
  /// Whole numbers, whose sums are exact in any order.
  static std::vector<T> Values(int n) {
    std::vector<T> values;
    for (int i = 0; i < n; ++i) values.push_back(static_cast<T>(i * 7919 % 1000 - 1500));
    return values;
  }
};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(VectorReductionsTest, Floats);

constexpr int kMost = 150;

TYPED_TEST(VectorReductionsTest, SumOfAnyLength) {
  double sum = 0;
  const std::vector<TypeParam> values = this->Values(kMost);
  for (int n = 0; n < kMost; ++n) {
    EXPECT_EQ(VectorSum(values.data(), n), sum) << n;
    sum += static_cast<double>(values[n]);
  }
}

TYPED_TEST(VectorReductionsTest, SumIsKeptInDouble) {
  const std::vector<TypeParam> values(1000, TypeParam(1) + TypeParam(1) / (1 << 20));
  EXPECT_EQ(VectorSum(values.data(), 1000), 1000 + 1000.0 / (1 << 20));
}

TYPED_TEST(VectorReductionsTest, MinWhereverItIs) {
  for (int n = 1; n < kMost; ++n) {
    std::vector<TypeParam> values = this->Values(n);
    for (int at = 0; at < n; ++at) {
      const TypeParam before = std::exchange(values[at], TypeParam(-2000));
      EXPECT_EQ(VectorMin(values.data(), n), -2000) << at << " of " << n;
      EXPECT_LT(VectorMax(values.data(), n), -500) << at << " of " << n;
      values[at] = std::numeric_limits<TypeParam>::quiet_NaN();
      EXPECT_TRUE(std::isnan(VectorMin(values.data(), n))) << at << " of " << n;
      values[at] = before;
    }
  }
}

TYPED_TEST(VectorReductionsTest, MaxWhereverItIs) {
  for (int n = 1; n < kMost; ++n) {
    std::vector<TypeParam> values = this->Values(n);
    for (int at = 0; at < n; ++at) {
      const TypeParam before = std::exchange(values[at], TypeParam(-100));
      EXPECT_EQ(VectorMax(values.data(), n), -100) << at << " of " << n;
      values[at] = std::numeric_limits<TypeParam>::infinity();
      EXPECT_EQ(VectorMax(values.data(), n), values[at]) << at << " of " << n;
      values[at] = before;
    }
  }
}

TYPED_TEST(VectorReductionsTest, MaxIsNanWhereverOneIs) {
  for (int n = 1; n < kMost; ++n) {
    std::vector<TypeParam> values = this->Values(n);
    values[n / 2] = std::numeric_limits<TypeParam>::infinity();
    for (int at = 0; at < n; ++at) {
      const TypeParam before =
          std::exchange(values[at], std::numeric_limits<TypeParam>::quiet_NaN());
      EXPECT_TRUE(std::isnan(VectorMax(values.data(), n))) << at << " of " << n;
      values[at] = before;
    }
  }
}

}  // namespace
}  // namespace tenon
