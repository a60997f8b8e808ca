// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/variable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;

Status Fill(VariableResource& variable, float value) {
  return variable.Modify([value](const Tensor& current, Tensor* next) {
    std::fill_n(next->data<float>(), current.num_elements(), value);
    return OkStatus();
  });
}

class RefVariableTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(variable_.Assign(Tensor::Vector({1.0f, 2.0f}))); }
  RefVariable variable_{DType::kFloat, PartialShape{2}};
};

TEST_F(RefVariableTest, WhatWasReadShowsUpdatesWhenItIsRenewed) {
  Tensor read = variable_.Read();
  EXPECT_TRUE(read.follows());
  ASSERT_OK(Fill(variable_, 5));
  EXPECT_THAT(read.flat<float>(), ElementsAre(1, 2));
  read.Renew();
  EXPECT_THAT(read.flat<float>(), ElementsAre(5, 5));
  ASSERT_OK(Fill(variable_, 6));
  ASSERT_OK(Fill(variable_, 7));
  read.Renew();
  EXPECT_THAT(read.flat<float>(), ElementsAre(7, 7));
}

TEST_F(RefVariableTest, CopiesSlicesAndShapesOfATensorFollowToo) {
  Tensor row = variable_.Read().Slice(1, 2);
  Tensor column = variable_.Read().Reshaped({2, 1}).value();
  Tensor copy = variable_.Read().Copy().value();
  EXPECT_FALSE(copy.follows());
  ASSERT_OK(variable_.Assign(Tensor::Vector({3.0f, 4.0f})));
  row.Renew();
  column.Renew();
  EXPECT_THAT(row.flat<float>(), ElementsAre(4));
  EXPECT_THAT(column.flat<float>(), ElementsAre(3, 4));
  EXPECT_EQ(column.shape(), (Shape{2, 1}));
  EXPECT_THAT(copy.flat<float>(), ElementsAre(1, 2));
}

TEST_F(RefVariableTest, ASettledValueStays) {
  Tensor read = variable_.Read();
  ASSERT_OK(Fill(variable_, 5));
  read.Settle();
  EXPECT_FALSE(read.follows());
  ASSERT_OK(Fill(variable_, 6));
  read.Renew();
  EXPECT_THAT(read.flat<float>(), ElementsAre(5, 5));
}

TEST_F(RefVariableTest, AnUpdateThatNobodySeesIsInPlace) {
  const void* const place = variable_.Read().raw_data();
  ASSERT_OK(Fill(variable_, 5));
  EXPECT_EQ(variable_.Read().raw_data(), place);
  const Tensor reader = variable_.Read();
  ASSERT_OK(Fill(variable_, 6));
  EXPECT_NE(variable_.Read().raw_data(), place);
}

TEST_F(RefVariableTest, AValueOfAnotherShapeWithAsManyElementsIsShownUnderTheOldShape) {
  Tensor read = variable_.Read();
  ASSERT_OK(variable_.Assign(*Tensor::Vector({8.0f, 9.0f}).Reshaped({2, 1})));
  read.Renew();
  EXPECT_EQ(read.shape(), Shape{2});
  EXPECT_THAT(read.flat<float>(), ElementsAre(8, 9));
  EXPECT_EQ(variable_.Read().shape(), (Shape{2, 1}));
}

TEST_F(RefVariableTest, WhoReadBeforeAValueOfAnotherSizeKeepsTheLastOne) {
  Tensor early = variable_.Read();
  ASSERT_OK(Fill(variable_, 5));
  Tensor late = variable_.Read();
  ASSERT_OK(Fill(variable_, 6));
  ASSERT_OK(variable_.Assign(Tensor::Vector({1.0f, 2.0f, 3.0f})));
  ASSERT_OK(Fill(variable_, 7));
  early.Renew();
  EXPECT_THAT(early.flat<float>(), ElementsAre(6, 6));
  late.Renew();
  EXPECT_THAT(late.flat<float>(), ElementsAre(6, 6));
  EXPECT_TRUE(early.SharesBufferWith(late));
}

TEST(RefVariable, WhatWasReadOutlivesTheVariable) {
  Tensor early, late;
  {
    RefVariable variable(DType::kString, PartialShape{1});
    ASSERT_OK(variable.Assign(Tensor::Vector<std::string>({"long enough for the heap of text 1"})));
    early = variable.Read();
    ASSERT_OK(variable.Assign(Tensor::Vector<std::string>({"long enough for the heap of text 2"})));
    late = variable.Read();
  }
  early.Renew();
  late.Renew();
  EXPECT_TRUE(early.Equals(late));
  EXPECT_EQ(std::string(early.scalar<TString>()), "long enough for the heap of text 2");
}

TEST_F(RefVariableTest, AVariableTakesNoBufferThatSomebodyElseHas) {
  const Tensor constant = Tensor::Vector({8.0f, 9.0f});
  ASSERT_OK(variable_.Assign(constant));
  EXPECT_FALSE(variable_.Read().SharesBufferWith(constant));
  RefVariable other(DType::kFloat, PartialShape{2});
  ASSERT_OK(other.Assign(variable_.Read()));
  ASSERT_OK(Fill(variable_, 1));
  EXPECT_THAT(other.Read().flat<float>(), ElementsAre(8, 9));
  VariableResource resource(DType::kFloat, PartialShape{2});
  ASSERT_OK(resource.Assign(other.Read()));
  EXPECT_FALSE(resource.Read().SharesBufferWith(other.Read()));
}

TEST_F(RefVariableTest, AVariableTakesTheBufferOfASoleOwner) {
  Tensor value = Tensor::Vector({8.0f, 9.0f});
  const void* const place = value.raw_data();
  ASSERT_OK(variable_.Assign(std::move(value)));
  EXPECT_EQ(variable_.Read().raw_data(), place);
}

TEST(ResourceVariable, WhatWasReadIsTheValueOfOneMoment) {
  VariableResource variable(DType::kFloat, PartialShape{2});
  ASSERT_OK(variable.Assign(Tensor::Vector({1.0f, 2.0f})));
  Tensor read = variable.Read();
  EXPECT_FALSE(read.follows());
  ASSERT_OK(Fill(variable, 5));
  read.Renew();
  EXPECT_THAT(read.flat<float>(), ElementsAre(1, 2));
}

TEST(RefVariable, AReaderNeverSeesPartOfAnUpdateOfManyThreads) {
  constexpr int kThreads = 8, kRounds = 300, kElements = 1000;
  RefVariable variable(DType::kFloat, PartialShape());
  ASSERT_OK(variable.Assign(Tensor::Zeros(DType::kFloat, {kElements})));
  std::atomic<int> torn{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Tensor read = variable.Read();
      for (int i = 0; i < kRounds; ++i) {
        if (t % 4 == 3) {  // ends the versions now and then
          Tensor next = variable.Read();
          next.Settle();
          (void)variable.Assign(i % 10 == 0 ? Tensor::Zeros(DType::kFloat, {kElements + i % 3})
                                            : std::move(next));
          continue;
        }
        (void)variable.ModifyInPlace([](Tensor* value) {
          for (float& x : value->flat<float>()) x += 1;
          return OkStatus();
        });
        if (i % 7 == 0) read = variable.Read();
        read.Renew();
        const auto values = read.flat<float>();
        torn += std::count(values.begin(), values.end(), values[0]) !=
                static_cast<int64_t>(values.size());
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(torn, 0);
}

}  // namespace
}  // namespace tenon
