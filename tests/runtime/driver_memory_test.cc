// SPDX-License-Identifier: Apache-2.0
#include "runtime/accelerator/driver_memory.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/testing/simulated_driver.h"

namespace tenon::testing {
namespace {

constexpr size_t kMiB = 1 << 20;

TEST(DriverMemoryTest, PinnedBlocksServeAgain) {
  SimulatedDriver driver(1);
  PinnedMemory pinned(driver, 8 * kMiB);
  void* const first = pinned.Allocate(kMiB);
  EXPECT_TRUE(pinned.Contains(first));
  EXPECT_EQ(pinned.bytes_in_use(), int64_t{kMiB});
  pinned.Free(first, kMiB);
  EXPECT_EQ(pinned.bytes_in_use(), 0);
  EXPECT_EQ(pinned.Allocate(kMiB - 1000), first);
  pinned.Free(first, kMiB - 1000);
}

TEST(DriverMemoryTest, PinnedMemoryHasALimitThatSmallBlocksPass) {
  SimulatedDriver driver(1);
  PinnedMemory pinned(driver, 2 * kMiB);
  void* const most = pinned.Allocate(kMiB + kMiB / 2);
  ASSERT_NE(most, nullptr);
  EXPECT_EQ(pinned.Allocate(kMiB), nullptr);
  EXPECT_EQ(pinned.Allocate(100 * kMiB), nullptr);
  void* const small = pinned.Allocate(8);
  EXPECT_NE(small, nullptr);
  pinned.Free(small, 8);
  pinned.Free(most, kMiB + kMiB / 2);
  // What is kept makes room for another size.
  void* const other = pinned.Allocate(kMiB);
  EXPECT_NE(other, nullptr);
  EXPECT_FALSE(pinned.Contains(most) && other != most);
  pinned.Free(other, kMiB);
}

TEST(DriverMemoryTest, StagingGoesOnInOrdinaryMemory) {
  SimulatedDriver driver(1);
  PinnedMemory pinned(driver, 2 * kMiB);
  StagingMemory staging(pinned);
  // Threads of other tests may still free the little that they had.
  const int64_t before = CpuAllocator().bytes_in_use();
  void* const first = staging.Allocate(kMiB);
  EXPECT_TRUE(pinned.Contains(first));
  EXPECT_LT(CpuAllocator().bytes_in_use(), before + int64_t{kMiB});
  void* const second = staging.Allocate(2 * kMiB);
  ASSERT_NE(second, nullptr);
  EXPECT_FALSE(pinned.Contains(second));
  EXPECT_GT(CpuAllocator().bytes_in_use(), before + int64_t{kMiB});
  std::memset(second, 1, 2 * kMiB);
  EXPECT_EQ(staging.bytes_in_use(), int64_t{3 * kMiB});
  staging.Free(second, 2 * kMiB);
  staging.Free(first, kMiB);
  EXPECT_EQ(staging.bytes_in_use(), 0);
  EXPECT_LT(CpuAllocator().bytes_in_use(), before + int64_t{kMiB});
}

}  // namespace
}  // namespace tenon::testing
