// SPDX-License-Identifier: Apache-2.0
#include "core/memory/counted_memory.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/base/exceptions.h"
#include "core/memory/memory_limit.h"
#include "core/proto/proto_io_tensor.h"
#include "core/tensor/resource.h"
#include "core/tensor/tensor.h"
#include "core/tensor/variable.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;

/// What a thread may have taken in small blocks without telling, some times over.
constexpr int64_t kSlack = 1 << 20;

class CountedMemoryTest : public ::testing::Test {
 protected:
  CountedMemoryTest() : before_(CpuAllocator().bytes_in_use()) {
    SetCpuMemoryLimit(before_ + (16 << 20));
  }
  ~CountedMemoryTest() override { SetCpuMemoryLimit(DefaultCpuMemoryLimit()); }

  int64_t used() const { return CpuAllocator().bytes_in_use() - before_; }

  const int64_t before_;
};

TEST_F(CountedMemoryTest, AContainerBeyondTheLimitThrows) {
  EXPECT_THAT(CatchExceptions([] {
                CountedVector<double> numbers(4 << 20);
                return OkStatus();
              }),
              IsError(StatusCode::kResourceExhausted, "out of memory"));
  EXPECT_THROW(CountedVector<double>().reserve(SIZE_MAX / 16), std::exception);
  const CountedVector<double> numbers(1 << 20);
  EXPECT_GE(used(), 8 << 20);
}

TEST_F(CountedMemoryTest, DimensionsAreCountedButNeverRefused) {
  const Shape shape(DimVector(Shape::kMaxRank, 1));
  std::vector<Shape> shapes(10000, shape);
  EXPECT_GE(used(), 10000 * (Shape::kMaxRank - 4) * 8);
  EXPECT_EQ(shapes.back().rank(), Shape::kMaxRank);
  EXPECT_THAT(CatchExceptions([] {
                CountedVector<char> more(1 << 20);
                return OkStatus();
              }),
              IsError(StatusCode::kResourceExhausted, "out of memory"));
  shapes.clear();
  EXPECT_LT(std::abs(used()), kSlack);
}

TEST_F(CountedMemoryTest, TextOfAnyLengthStopsAtTheLimit) {
  for (const size_t length : {100, 3000, 5000, 3 << 20}) {
    auto text = Tensor::Allocate(CpuAllocator(), DType::kString, {100000});
    ASSERT_OK(text);
    EXPECT_THAT(CatchExceptions([&] {
                  for (TString& t : text->flat<TString>()) t = TString(length, 'x');
                  return length == 100 ? ResourceExhausted("out of memory") : OkStatus();
                }),
                IsError(StatusCode::kResourceExhausted, "out of memory"))
        << length;
    EXPECT_GE(used(), 11 << 20) << length;
    *text = Tensor();
    EXPECT_LT(std::abs(used()), kSlack) << length;
  }
}

TEST_F(CountedMemoryTest, WhatOneThreadTakesAnotherMayGiveBack) {
  Tensor text(DType::kString, {1000});
  std::thread([&] {
    for (TString& t : text.flat<TString>()) t = TString(1000, 'x');
  }).join();
  EXPECT_GE(used(), 1000000);
  text = Tensor();
  EXPECT_LT(std::abs(used()), kSlack);
}

TEST_F(CountedMemoryTest, StringsHandlesAndVariantsAreCountedAsNumbersAre) {
  for (const DType type : {DType::kString, DType::kResource, DType::kVariant}) {
    auto tensor = Tensor::Allocate(CpuAllocator(), type, {1000});
    ASSERT_OK(tensor);
    EXPECT_GE(used(), 16000) << ToString(type);
    EXPECT_THAT(Tensor::Allocate(CpuAllocator(), type, {2 << 20}),
                IsError(StatusCode::kResourceExhausted, "out of cpu memory"));
    EXPECT_THAT(Tensor::Allocate(CpuAllocator(), type, {int64_t{1} << 60}),
                IsError(StatusCode::kResourceExhausted, "out of cpu memory"));
  }
  EXPECT_LT(std::abs(used()), kSlack);
}

TEST_F(CountedMemoryTest, ACopyForWhichThereIsNoMemoryIsAnError) {
  const Tensor large(DType::kFloat, {3 << 20});
  EXPECT_THAT(large.Copy(), IsError(StatusCode::kResourceExhausted, "out of cpu memory"));
}

TEST_F(CountedMemoryTest, ACopyOfTextForWhichThereIsNoMemoryIsAnError) {
  const Tensor text = Tensor::Scalar(std::string(10 << 20, 'x'));
  EXPECT_THAT(text.Copy(), IsError(StatusCode::kResourceExhausted, "out of memory"));
}

TEST_F(CountedMemoryTest, AMessageOfMoreTextThanThereIsMemoryForIsAnError) {
  const std::string text(10 << 20, 'x');
  TensorProto list, content;
  ASSERT_OK(TensorToProto(Tensor::Scalar(text), &list, TensorEncoding::kTyped));
  ASSERT_OK(TensorToProto(Tensor::Scalar(text), &content));
  const Tensor taken(DType::kInt8, {10 << 20});
  EXPECT_THAT(TensorFromProto(list), IsError(StatusCode::kResourceExhausted, "out of memory"));
  EXPECT_THAT(TensorFromProto(content), IsError(StatusCode::kResourceExhausted, "out of memory"));
}

TEST_F(CountedMemoryTest, AnUpdateInPlaceBesideAReaderFailsWithoutMemoryForTheCopy) {
  VariableResource variable(DType::kFloat, PartialShape());
  ASSERT_OK(variable.Assign(Tensor::Zeros(DType::kFloat, {3 << 20})));
  const auto set_first = [](Tensor* value) {
    value->data<float>()[0] = 1;
    return OkStatus();
  };
  {
    const Tensor reader = variable.Read();
    EXPECT_THAT(variable.ModifyInPlace(set_first),
                IsError(StatusCode::kResourceExhausted, "out of cpu memory"));
    EXPECT_EQ(reader.data<float>()[0], 0);
  }
  EXPECT_EQ(variable.Read().data<float>()[0], 0);
  EXPECT_OK(variable.ModifyInPlace(set_first));
  EXPECT_EQ(variable.Read().data<float>()[0], 1);
}

TEST_F(CountedMemoryTest, AnUpdateOfTextThatFailsHalfWayChangesNothing) {
  VariableResource variable(DType::kString, PartialShape());
  ASSERT_OK(variable.Assign(Tensor::Vector<std::string>({"a", "b"})));
  EXPECT_THAT(CatchExceptions([&] {
                return variable.ModifyInPlace([](Tensor* value) {
                  value->data<TString>()[0] = "changed";
                  value->data<TString>()[1] = TString(32 << 20, 'x');
                  return OkStatus();
                });
              }),
              IsError(StatusCode::kResourceExhausted, "out of memory"));
  EXPECT_TRUE(variable.Read().Equals(Tensor::Vector<std::string>({"a", "b"})));
}

}  // namespace
}  // namespace tenon
