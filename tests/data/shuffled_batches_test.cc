// SPDX-License-Identifier: Apache-2.0
#include "data/batch/shuffled_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using tenon::testing::IsError;

Tensor Numbers(int n) {
  std::vector<int32_t> values(n);
  std::iota(values.begin(), values.end(), 0);
  return Tensor::Vector(values);
}

std::vector<int32_t> Take(ShuffledBatches& batches, int64_t size) {
  const auto batch = batches.Next(size);
  EXPECT_TRUE(batch.ok()) << batch.status();
  const auto flat = (*batch)[0].flat<int32_t>();
  return {flat.begin(), flat.end()};
}

TEST(ShuffledBatchesTest, EveryRowComesOnceAnEpoch) {
  auto batches = *ShuffledBatches::Create({Numbers(10)}, 1);
  std::map<int32_t, int> seen;
  for (int i = 0; i < 10; ++i) {
    for (const int32_t row : Take(batches, 4)) ++seen[row];
  }
  for (const auto& [row, count] : seen) EXPECT_EQ(count, 4) << row;
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_EQ(batches.epochs_completed(), 3);  // the fourth ends with the last batch
}

TEST(ShuffledBatchesTest, ABatchSpansEpochsAndIsAlwaysFull) {
  auto batches = *ShuffledBatches::Create({Numbers(3)}, 1);
  EXPECT_EQ(Take(batches, 2).size(), 2u);
  EXPECT_EQ(batches.epochs_completed(), 0);
  EXPECT_EQ(Take(batches, 2).size(), 2u);
  EXPECT_EQ(batches.epochs_completed(), 1);
  EXPECT_EQ(Take(batches, 10).size(), 10u);
}

TEST(ShuffledBatchesTest, EachEpochHasAnotherOrderThatTheSeedDecides) {
  auto a = *ShuffledBatches::Create({Numbers(100)}, 7);
  auto b = *ShuffledBatches::Create({Numbers(100)}, 7);
  auto c = *ShuffledBatches::Create({Numbers(100)}, 8);
  const auto first = Take(a, 100), second = Take(a, 100);
  EXPECT_NE(first, second);
  EXPECT_EQ(first, Take(b, 100));
  EXPECT_EQ(second, Take(b, 100));
  EXPECT_NE(first, Take(c, 100));
}

TEST(ShuffledBatchesTest, RowsOfSeveralTensorsStayTogether) {
  const Tensor names = Tensor::Vector<std::string>({"0", "1", "2", "3"});
  const Tensor pairs = Tensor::Of<float>({4, 2}, {0, 0, 1, 10, 2, 20, 3, 30});
  auto batches = *ShuffledBatches::Create({Numbers(4), names, pairs}, 3);
  const auto batch = *batches.Next(3);
  EXPECT_EQ(batch[2].shape(), (Shape{3, 2}));
  for (int i = 0; i < 3; ++i) {
    const int row = batch[0].data<int32_t>()[i];
    EXPECT_EQ(batch[1].data<TString>()[i], StrCat(row));
    EXPECT_EQ(batch[2].data<float>()[2 * i + 1], row * 10);
  }
}

TEST(ShuffledBatchesTest, TheFullBatchesOfAnEpochAreCounted) {
  const auto batches = *ShuffledBatches::Create({Numbers(10)}, 1);
  EXPECT_EQ(*batches.PerEpoch(3), 3);
  EXPECT_EQ(*batches.PerEpoch(10), 1);
  EXPECT_THAT(batches.PerEpoch(11), IsError(StatusCode::kInvalidArgument,
                                            "a batch of 11 rows, wanted 1 to the 10 there are"));
  EXPECT_FALSE(batches.PerEpoch(0).ok());
}

TEST(ShuffledBatchesTest, WrongTensorsAndSizesAreRefused) {
  EXPECT_FALSE(ShuffledBatches::Create({}, 0).ok());
  EXPECT_FALSE(ShuffledBatches::Create({Numbers(3), Numbers(4)}, 0).ok());
  EXPECT_FALSE(ShuffledBatches::Create({Tensor::Scalar<float>(1)}, 0).ok());
  EXPECT_FALSE(ShuffledBatches::Create({Tensor()}, 0).ok());
  EXPECT_FALSE(ShuffledBatches::Create({Tensor::Zeros(DType::kFloat, {0, 3})}, 0).ok());
  auto batches = *ShuffledBatches::Create({Numbers(3)}, 0);
  EXPECT_FALSE(batches.Next(0).ok());
}

TEST(ShuffledBatchesTest, SeekFindsWhatAWalkFinds) {
  const Tensor rows = Tensor::Of<int32_t>({5}, {0, 1, 2, 3, 4});
  auto walk = ShuffledBatches::Create({rows}, 3);
  ASSERT_TRUE(walk.ok());
  std::vector<std::vector<int32_t>> batches;
  const auto next = [](ShuffledBatches& from) {
    const Tensor batch = (*from.Next(2))[0];
    return std::vector<int32_t>(batch.flat<int32_t>().begin(), batch.flat<int32_t>().end());
  };
  for (int i = 0; i < 20; ++i) batches.push_back(next(*walk));
  auto seeker = ShuffledBatches::Create({rows}, 3);
  ASSERT_TRUE(seeker.ok());
  for (const int i : {7, 0, 19, 19, 4, 5}) {
    seeker->Seek(i * 2);
    EXPECT_EQ(next(*seeker), batches[i]) << i;
  }
}

}  // namespace
}  // namespace tenon
