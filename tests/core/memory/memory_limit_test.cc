// SPDX-License-Identifier: Apache-2.0
#include "core/memory/memory_limit.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/tensor/tensor.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;

/// A folder that looks like /sys/fs/cgroup.
class CgroupMemoryLimitTest : public ::testing::Test {
 protected:
  CgroupMemoryLimitTest() { std::filesystem::remove_all(root_); }
  ~CgroupMemoryLimitTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& content) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << content;
  }
  int64_t Limit(const std::string& membership) {
    return CgroupMemoryLimit(membership, root_.string());
  }

  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / StrCat("tenon_cgroup_", getpid());
};

TEST_F(CgroupMemoryLimitTest, TheLowestOnTheWayToTheRootCounts) {
  Write("memory.max", "9000000\n");
  Write("a/memory.max", "5000000\n");
  Write("a/b/memory.max", "max\n");
  EXPECT_EQ(Limit("0::/a/b\n"), 5000000);
  EXPECT_EQ(Limit("0::/a"), 5000000);
  EXPECT_EQ(Limit("0::/\n"), 9000000);
}

TEST_F(CgroupMemoryLimitTest, AContainersRootIsFoundUnderTheHostsName) {
  Write("memory.max", "7000000\n");
  EXPECT_EQ(Limit("0::/system.slice/docker-0123.scope\n"), 7000000);
}

TEST_F(CgroupMemoryLimitTest, TheFirstVersionHasATreeForEachController) {
  Write("memory/x/memory.limit_in_bytes", "3000000\n");
  Write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("unified/memory.max", "1\n");
  const std::string membership = "5:cpu,cpuacct:/x\n4:memory:/x\n0::/x\n";
  EXPECT_EQ(Limit(membership), 3000000);
  EXPECT_EQ(Limit("4:hugetlb,memory:/x"), 3000000);
  EXPECT_EQ(Limit("4:memory2:/x"), INT64_MAX);
}

TEST_F(CgroupMemoryLimitTest, WhatCannotBeReadIsNoLimit) {
  EXPECT_EQ(Limit(""), INT64_MAX);
  EXPECT_EQ(Limit("0::/a\n"), INT64_MAX);
  Write("memory.max", "many");
  Write("a/memory.max", "99999999999999999999999");
  EXPECT_EQ(Limit("nonsense\n:\n0::/a/../../b\n::"), INT64_MAX);
}

TEST(MemoryLimitTest, TheDefaultLeavesSomethingOfTheMachinesMemory) {
  EXPECT_GT(DefaultCpuMemoryLimit(), 0);
  EXPECT_LT(DefaultCpuMemoryLimit(), sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
}

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
