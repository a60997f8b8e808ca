// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

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
