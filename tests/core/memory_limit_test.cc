// SPDX-License-Identifier: Apache-2.0
#include "core/memory_limit.h"

#include <gtest/gtest.h>

#include "core/tensor.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;

TEST(MemoryLimitTest, ATensorLargerThanTheMachinesMemoryIsRefused) {
  for (const int64_t n : {int64_t{1} << 44, int64_t{1} << 60}) {
    EXPECT_THAT(Tensor::Allocate(CpuAllocator(), DType::kFloat, {n}),
                IsError(StatusCode::kResourceExhausted, "out of cpu memory"));
  }
}

TEST(MemoryLimitTest, TensorsTogetherStayBelowTheLimit) {
  constexpr int64_t kElements = 1 << 20;
  SetCpuMemoryLimit(CpuAllocator().bytes_in_use() + 3 * kElements);
  auto first = Tensor::Allocate(CpuAllocator(), DType::kInt16, {kElements});
  ASSERT_OK(first);
  EXPECT_THAT(Tensor::Allocate(CpuAllocator(), DType::kInt16, {kElements}),
              IsError(StatusCode::kResourceExhausted, "out of cpu memory"));
  *first = Tensor();
  EXPECT_OK(Tensor::Allocate(CpuAllocator(), DType::kInt16, {kElements}));
}

TEST(MemoryLimitTest, BlocksKeptForTheNextOfTheirSizeDoNotCount) {
  constexpr int64_t kBytes = 64 << 20;
  const int64_t before = CpuAllocator().bytes_in_use();
  SetCpuMemoryLimit(before + 3 * kBytes + 4096);
  for (int64_t size : {kBytes, kBytes, 2 * kBytes, kBytes + (2 << 20), 3 * kBytes, kBytes}) {
    auto block = Tensor::Allocate(CpuAllocator(), DType::kInt8, {size});
    ASSERT_OK(block);
    block->data<int8_t>()[size - 1] = 1;
    EXPECT_GE(CpuAllocator().bytes_in_use(), before + size);
  }
  EXPECT_EQ(CpuAllocator().bytes_in_use(), before);
}

}  // namespace
}  // namespace tenon
