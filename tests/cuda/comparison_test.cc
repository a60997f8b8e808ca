// SPDX-License-Identifier: Apache-2.0
//
// What is near enough to the CPU's values and what is not: this needs no GPU.
#include "tests/cuda/comparison.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace tenon::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Comparison CompareNumbers(const std::vector<float>& found, const std::vector<float>& wanted,
                          Closeness closeness) {
  return Compare({Tensor::Vector(found)}, {Tensor::Vector(wanted)}, closeness);
}

TEST(GpuComparisonTest, ToleranceGoesByWhatIsComputed) {
  const float next = std::nextafterf(3, 4);
  EXPECT_THAT(CompareNumbers({next, 1}, {3, 1}, Closeness::kSame).difference,
              HasSubstr("element 0"));
  EXPECT_THAT(CompareNumbers({next, 1}, {3, 1}, Closeness::kPlaces).difference, IsEmpty());
  EXPECT_THAT(CompareNumbers({3.00002f, 1}, {3, 1}, Closeness::kPlaces).difference,
              HasSubstr("found 3.00002"));
  EXPECT_THAT(CompareNumbers({3.00002f, 1}, {3, 1}, Closeness::kSums).difference, IsEmpty());
  EXPECT_THAT(CompareNumbers({3.0001f, 1}, {3, 1}, Closeness::kSums).difference,
              HasSubstr("wanted 3"));
  // The largest element counts for sums.
  const Comparison small = CompareNumbers({3, 1.00002f}, {3, 1}, Closeness::kSums);
  EXPECT_THAT(small.difference, IsEmpty());
  EXPECT_NEAR(small.error, 2e-5 / 3, 1e-7);
}

TEST(GpuComparisonTest, NansAndInfinitiesAreInTheSamePlaces) {
  for (const Closeness closeness : {Closeness::kSame, Closeness::kPlaces, Closeness::kSums}) {
    EXPECT_THAT(CompareNumbers({NAN, kInfinity, 2}, {-NAN, kInfinity, 2}, closeness).difference,
                IsEmpty());
    EXPECT_THAT(CompareNumbers({NAN, 1}, {1, NAN}, closeness).difference, HasSubstr("found nan"));
    EXPECT_THAT(CompareNumbers({-kInfinity, 1}, {kInfinity, 1}, closeness).difference,
                HasSubstr("found -inf"));
    EXPECT_THAT(CompareNumbers({3e38f, 1}, {kInfinity, 1}, closeness).difference,
                HasSubstr("wanted inf"));
  }
}

TEST(GpuComparisonTest, WholeNumbersShapesAndDTypesAreEqual) {
  const auto differs = [](const Tensor& found, const Tensor& wanted) {
    return !Compare({found}, {wanted}, Closeness::kSums).difference.empty();
  };
  EXPECT_FALSE(differs(Tensor::Vector({1, 2}), Tensor::Vector({1, 2})));
  EXPECT_TRUE(differs(Tensor::Vector({1, 2}), Tensor::Vector({1, 3})));
  EXPECT_TRUE(differs(Tensor::Vector({1.0f}), Tensor::Vector({1.0})));
  EXPECT_TRUE(differs(Tensor::Of<float>({1, 2}, {1, 2}), Tensor::Of<float>({2}, {1, 2})));
  EXPECT_FALSE(Compare({}, {Tensor::Scalar(1)}, Closeness::kSums).difference.empty());
}

}  // namespace
}  // namespace tenon::testing
