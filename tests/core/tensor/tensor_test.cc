// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/tensor/variable.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using tenon::testing::IsError;
using ::testing::ElementsAre;

TEST(TensorTest, CopiesShareTheBuffer) {
  Tensor a = Tensor::Of<float>({2}, {1, 2});
  EXPECT_TRUE(a.HasOneReference());
  const Tensor b = a;
  EXPECT_TRUE(a.SharesBufferWith(b));
  EXPECT_FALSE(a.HasOneReference());
  EXPECT_FALSE(a.SharesBufferWith(*a.Copy()));
}

TEST(TensorTest, SlicesShareTheBufferAndKeepItAlive) {
  Tensor whole = Tensor::Of<int32_t>({3, 2}, {0, 1, 2, 3, 4, 5});
  Tensor rows = whole.Slice(1, 3);
  EXPECT_TRUE(rows.SharesBufferWith(whole));
  whole = Tensor();
  EXPECT_EQ(rows.shape(), (Shape{2, 2}));
  EXPECT_THAT(rows.flat<int32_t>(), ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(rows.Slice(1, 1).num_elements(), 0);
  const Tensor text = Tensor::Vector<std::string>({"a", "b", "c"}).Slice(2, 3);
  EXPECT_THAT(text.flat<TString>(), ElementsAre("c"));
}

TEST(TensorTest, BuffersAreAligned) {
  const Tensor t(DType::kInt8, {3});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.raw_data()) % Allocator::kAlignment, 0u);
}

TEST(TensorTest, ReshapingNeedsAsManyElements) {
  const Tensor t = Tensor::Zeros(DType::kFloat, {2, 3});
  EXPECT_EQ(t.Reshaped({6})->shape(), (Shape{6}));
  EXPECT_THAT(t.Reshaped({4}), IsError(StatusCode::kInvalidArgument, "[4] of 4"));
}

TEST(TensorTest, EqualityIsOfDtypeShapeAndContent) {
  const Tensor t = Tensor::Of<float>({2}, {1, 2});
  EXPECT_TRUE(t.Equals(Tensor::Of<float>({2}, {1, 2})));
  EXPECT_FALSE(t.Equals(Tensor::Of<float>({2}, {1, 3})));
  EXPECT_FALSE(t.Equals(Tensor::Of<float>({1, 2}, {1, 2})));
  EXPECT_FALSE(t.Equals(t.BitcastTo(DType::kInt32, t.shape())));
  EXPECT_TRUE(Tensor::Scalar("a").Equals(Tensor::Scalar("a")));
}

TEST(TensorTest, MoreMemoryThanThereIsIsResourceExhausted) {
  EXPECT_THAT(Tensor::Allocate(CpuAllocator(), DType::kDouble, {int64_t{1} << 60}),
              IsError(StatusCode::kResourceExhausted, "out of cpu memory"));
}

TEST(TensorTest, BytesOfStringsAreThoseOfTheText) {
  EXPECT_EQ(Tensor::Vector<std::string>({"ab", "", "cde"}).num_bytes(), 5u);
  EXPECT_EQ(Tensor::Zeros(DType::kDouble, {3}).num_bytes(), 24u);
}

TEST(TensorTest, TextShowsDtypeShapeAndFirstElements) {
  EXPECT_EQ(Tensor::Of<int32_t>({3}, {1, 2, 3}).ToString(2), "int32[3] 1 2 ...");
  EXPECT_EQ(Tensor().ToString(), "invalid");
}

TEST(TensorTest, TextIsShownWholeAsPythonShowsBytes) {
  const auto shown = [](std::string_view text) {
    return Tensor::Scalar(std::string(text)).ToString();
  };
  EXPECT_EQ(shown("plain 'n\"ever"), "string[] 'plain \\'n\"ever'");
  EXPECT_EQ(shown("it's"), "string[] \"it's\"");
  EXPECT_EQ(shown("\"'\\"), R"(string[] '"\'\\')");
  EXPECT_EQ(shown(std::string_view("a\0b\n\t\r\x1f\x7f\xc3\xa9", 10)),
            R"(string[] 'a\x00b\n\t\r\x1f\x7f\xc3\xa9')");
}

TEST(VariableTest, AReadIsNotTornByAnUpdateInPlace) {
  VariableResource v(DType::kFloat, PartialShape{2});
  ASSERT_OK(v.Assign(Tensor::Of<float>({2}, {1, 2})));
  const auto add_one = [](const Tensor& current, Tensor* next) {
    for (int i = 0; i < 2; ++i) next->data<float>()[i] = current.data<float>()[i] + 1;
    return OkStatus();
  };
  const void* before = v.Read().raw_data();
  ASSERT_OK(v.Modify(add_one));
  EXPECT_EQ(v.Read().raw_data(), before);  // nobody else had the buffer
  const Tensor reader = v.Read();
  ASSERT_OK(v.Modify(add_one));
  EXPECT_THAT(reader.flat<float>(), ElementsAre(2, 3));
  EXPECT_THAT(v.Read().flat<float>(), ElementsAre(3, 4));
  ASSERT_OK(v.ModifyInPlace([](Tensor* value) {
    value->data<float>()[0] = 9;
    return OkStatus();
  }));
  EXPECT_THAT(reader.flat<float>(), ElementsAre(2, 3));
  EXPECT_THAT(v.Read().flat<float>(), ElementsAre(9, 4));
}

TEST(VariableTest, AFailedUpdateOfASharedValueChangesNothing) {
  VariableResource v(DType::kFloat, PartialShape{});
  ASSERT_OK(v.Assign(Tensor::Scalar<float>(1)));
  const Tensor reader = v.Read();
  EXPECT_FALSE(v.Modify([](const Tensor&, Tensor*) { return Internal("no"); }).ok());
  EXPECT_TRUE(v.Read().SharesBufferWith(reader));
}

TEST(VariableTest, AnUninitializedVariableSaysSo) {
  VariableResource v(DType::kFloat, PartialShape{}, "W");
  EXPECT_FALSE(v.initialized());
  EXPECT_THAT(v.ModifyInPlace([](Tensor*) { return OkStatus(); }),
              IsError(StatusCode::kFailedPrecondition, "uninitialized value W"));
}

TEST(VariableTest, UpdatesOfSeveralThreadsAllCount) {
  VariableResource v(DType::kInt32, PartialShape{});
  ASSERT_OK(v.Assign(Tensor::Scalar<int32_t>(0)));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const Tensor reader = v.Read();
        EXPECT_OK(v.Modify([](const Tensor& current, Tensor* next) {
          *next->data<int32_t>() = current.scalar<int32_t>() + 1;
          return OkStatus();
        }));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(v.Read().scalar<int32_t>(), 4000);
}

}  // namespace
}  // namespace tenon
