// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

OpResult TopOf(const Tensor& x, int32_t k) {
  return RunOp("TopKV2", {x, Tensor::Scalar(k)}, {}, /*hide_inputs=*/true);
}

TEST(TopK, OfEqualsTheFirstComeFirst) {
  const Tensor x = Tensor::Of<float>({2, 5}, {3, 1, 3, 2, 3, 0, 0, 0, 0, 9});
  const OpResult result = TopOf(x, 3);
  ASSERT_OK(result.status);
  EXPECT_THAT(Numbers(result.outputs[0]), ElementsAre(3, 3, 3, 9, 0, 0));
  EXPECT_THAT(Numbers(result.outputs[1]), ElementsAre(0, 2, 4, 4, 0, 1));
  EXPECT_THAT(Numbers(TopOf(x, 1).outputs[1]), ElementsAre(0, 4));
  EXPECT_EQ(TopOf(x, 0).outputs[0].shape(), (Shape{2, 0}));
}

TEST(TopK, KMayBeAnAttribute) {
  const OpResult result = RunOp("TopK", {Tensor::Vector<int32_t>({4, 7, 5})}, {{"k", 2}});
  ASSERT_OK(result.status);
  EXPECT_THAT(Numbers(result.outputs[0]), ElementsAre(7, 5));
  EXPECT_THAT(Numbers(result.outputs[1]), ElementsAre(1, 2));
  EXPECT_EQ(result.declared_shapes[0], PartialShape{2});
}

TEST(TopK, NaNsComeFirstAndLongRowsAreSorted) {
  constexpr int64_t kRow = 5000;
  Tensor x(DType::kFloat, {kRow});
  for (int64_t i = 0; i < kRow; ++i) {
    x.data<float>()[i] = i % 100 == 7 ? NAN : static_cast<float>((i * 7919) % kRow);
  }
  const OpResult result = TopOf(x, 60);
  ASSERT_OK(result.status);
  const float* values = result.outputs[0].data<float>();
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(std::isnan(values[i])) << i;
  for (int i = 51; i < 60; ++i) EXPECT_LT(values[i], values[i - 1]);
}

/// Many of many are sorted in another way.
TEST(TopK, ManyOfALongRowAreInTheSameOrder) {
  constexpr int64_t kRow = 5000, kRows = 2;
  const auto check = [&]<typename T>(T) {
    Tensor x(kDTypeOf<T>, {kRows, kRow});
    uint64_t random = 1;
    for (T& v : x.flat<T>()) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const int choice = static_cast<int>(random >> 40) % 1000;
      const int low = std::is_unsigned_v<T> ? 0 : 500, step = sizeof(T) == 1 ? 5 : 1;
      v = T(static_cast<float>((choice - low) / step));
      if constexpr (!std::is_integral_v<T>) {
        if (choice < 20) v = T(choice % 2 == 0 ? NAN : -0.0f);
        if (choice == 20) v = T(INFINITY);
        if (choice > 900) v = T(static_cast<float>(choice - 950) / 64);
      }
    }
    const int32_t k = kRow / 2;
    const OpResult result = TopOf(x, k);
    ASSERT_OK(result.status);
    for (int64_t r = 0; r < kRows; ++r) {
      const T* const row = x.data<T>() + r * kRow;
      std::vector<int32_t> wanted(kRow);
      std::iota(wanted.begin(), wanted.end(), 0);
      std::sort(wanted.begin(), wanted.end(), [&](int32_t i, int32_t j) {
        const double a = static_cast<double>(row[i]), b = static_cast<double>(row[j]);
        if (a == b || (std::isnan(a) && std::isnan(b))) return i < j;
        return std::isnan(a) || a > b;
      });
      wanted.resize(k);
      const int32_t* const found = result.outputs[1].data<int32_t>() + r * k;
      EXPECT_EQ(std::vector<int32_t>(found, found + k), wanted) << ToString(x.dtype());
    }
  };
  check(float{});
  check(Half{});
  check(BFloat16{});
  check(int32_t{});
  check(uint32_t{});
  check(int8_t{});
}

TEST(TopK, WrongArgumentsAreRefused) {
  const Tensor x = Tensor::Vector<float>({1, 2});
  EXPECT_THAT(TopOf(x, 3).status, IsError(kInvalid, "at least k columns. Had 2, needed 3"));
  EXPECT_THAT(TopOf(x, -1).status, IsError(kInvalid, "Need k >= 0, got -1"));
  EXPECT_THAT(TopOf(Tensor::Scalar<float>(1), 1).status, IsError(kInvalid, "input must be >= 1-D"));
  const Tensor wide(DType::kFloat, {40000});
  EXPECT_THAT(RunOp("TopKV2", {wide, Tensor::Scalar(1)}, {{"index_type", DType::kInt16}}).status,
              IsError(kInvalid, "rows of 40000 have indices that int16 does not hold"));
}

}  // namespace
}  // namespace tenon::testing
