// SPDX-License-Identifier: Apache-2.0
#include "ops/math/vector_reductions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace tenon {
namespace {

constexpr int kMost = 150;

template <typename T>
class VectorReductionsTest : public ::testing::Test {
 protected:
  /// Whole numbers, whose sums are exact in any order.
  static std::vector<T> Values(int n) {
    std::vector<T> values;
    for (int i = 0; i < n; ++i) values.push_back(static_cast<T>(i * 7919 % 1000 - 1500));
    return values;
  }
  /// Has `check` look at values of every length with `value` at every place.
  static void AtEachPlace(T value, const std::function<void(const T* values, int n)>& check) {
    for (int n = 1; n < kMost; ++n) {
      for (int at = 0; at < n; ++at) {
        SCOPED_TRACE(::testing::Message() << at << " of " << n);
        std::vector<T> values = Values(n);
        values[at] = value;
        check(values.data(), n);
      }
    }
  }
};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(VectorReductionsTest, Floats);

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

TYPED_TEST(VectorReductionsTest, ExtremesWhereverTheyAre) {
  this->AtEachPlace(-2000, [](const TypeParam* values, int n) {
    EXPECT_EQ(VectorMin(values, n), -2000);
    EXPECT_LE(VectorMax(values, n), n == 1 ? -2000 : -500);
  });
  this->AtEachPlace(-100, [](const TypeParam* values, int n) {
    EXPECT_EQ(VectorMax(values, n), -100);
    EXPECT_LE(VectorMin(values, n), n == 1 ? -100 : -581);
  });
}

TYPED_TEST(VectorReductionsTest, ExtremesAreNanWhereverOneIs) {
  this->AtEachPlace(std::numeric_limits<TypeParam>::quiet_NaN(),
                    [](const TypeParam* values, int n) {
                      EXPECT_TRUE(std::isnan(VectorMax(values, n)));
                      EXPECT_TRUE(std::isnan(VectorMin(values, n)));
                    });
}

}  // namespace
}  // namespace tenon
