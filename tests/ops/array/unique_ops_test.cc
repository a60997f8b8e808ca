// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

TEST(UniqueV2, SlicesAlongAnAxis) {
  const Tensor x = Tensor::Of<int32_t>({3, 3}, {1, 0, 1, 2, 0, 2, 1, 0, 1});
  const auto run = [&](int64_t axis) {
    return RunOp("UniqueWithCountsV2", {x, Tensor::Vector<int64_t>({axis})});
  };
  const OpResult rows = run(0), columns = run(-1);
  ASSERT_OK(rows.status);
  EXPECT_THAT(Numbers(rows.outputs[0]), ElementsAre(1, 0, 1, 2, 0, 2));
  EXPECT_THAT(Numbers(rows.outputs[1]), ElementsAre(0, 1, 0));
  EXPECT_THAT(Numbers(rows.outputs[2]), ElementsAre(2, 1));
  ASSERT_OK(columns.status);
  EXPECT_THAT(Numbers(columns.outputs[0]), ElementsAre(1, 0, 2, 0, 1, 0));
  EXPECT_THAT(Numbers(columns.outputs[1]), ElementsAre(0, 1, 0));
}

TEST(UniqueV2, WrongAxesAreRefused) {
  const Tensor x = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  const auto status = [&](const Tensor& axis) { return RunOp("UniqueV2", {x, axis}).status; };
  EXPECT_THAT(status(Tensor::Vector<int64_t>({2})),
              IsError(kInvalid, "axis expects to be in the range [-2, 2)"));
  EXPECT_THAT(status(Tensor::Vector<int64_t>({0, 1})),
              IsError(kInvalid, "axis does not support input tensors larger than 1 elements"));
  EXPECT_THAT(status(Tensor::Vector<int64_t>({})), IsError(kInvalid, "unique expects a 1D vector"));
}

TEST(ListDiff, KeepsRepeatsAndOrder) {
  const OpResult result = RunOp("ListDiff", {Tensor::Vector<TString>({"b", "a", "b", "c"}),
                                             Tensor::Vector<TString>({"a", "d"})});
  ASSERT_OK(result.status);
  EXPECT_TRUE(result.outputs[0].Equals(Tensor::Vector<TString>({"b", "b", "c"})));
  EXPECT_THAT(Numbers(result.outputs[1]), ElementsAre(0, 2, 3));
}

TEST(Bincount, CountsWithAndWithoutWeights) {
  const Tensor values = Tensor::Of<int32_t>({2, 2}, {1, 3, 1, 9}), size = Tensor::Scalar(4);
  const Tensor none(DType::kFloat, {0});
  const Tensor weights = Tensor::Of<float>({2, 2}, {0.5, 1, 2, 4});
  EXPECT_THAT(Numbers(RunOpOrDie("Bincount", {values, size, none})), ElementsAre(0, 2, 0, 1));
  EXPECT_THAT(Numbers(RunOpOrDie("Bincount", {values, size, weights})), ElementsAre(0, 2.5, 0, 1));
  EXPECT_THAT(Numbers(RunOpOrDie("DenseBincount", {values, size, weights})),
              ElementsAre(0, 0.5, 0, 1, 0, 2, 0, 0));
  EXPECT_THAT(RunOp("Bincount", {Tensor::Scalar(-1), size, none}).status,
              IsError(kInvalid, "non-negative"));
  EXPECT_THAT(RunOp("DenseBincount", {values, Tensor::Scalar(-2), none}, {}, true).status,
              IsError(kInvalid, "size (-2) must be non-negative"));
}

TEST(Bincount, ManyNumbersAreCountedAsThoughEachWeighedOne) {
  for (const int64_t n : {159, 160, 161, 162, 163, 20003}) {
    Tensor values(DType::kInt32, {n}), ones(DType::kInt64, {n});
    for (int64_t i = 0; i < n; ++i) {
      values.data<int32_t>()[i] = static_cast<int32_t>(i * i % 13);  // 10 to 12 have no bin
      ones.data<int64_t>()[i] = 1;
    }
    const Tensor bins = Tensor::Scalar(10), none(DType::kInt64, {0});
    const Tensor counts = RunOpOrDie("Bincount", {values, bins, none});
    EXPECT_TRUE(counts.Equals(RunOpOrDie("Bincount", {values, bins, ones}))) << n;
    EXPECT_TRUE(counts.Equals(RunOpOrDie("DenseBincount", {values, bins, none}))) << n;
  }
}

}  // namespace
}  // namespace tenon::testing
