// SPDX-License-Identifier: Apache-2.0
#include "core/memory/memory_account.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/tensor/tensor.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;

constexpr int64_t kMebibyte = 1 << 20;

StatusOr<Tensor> Mebibytes(int n) {
  return Tensor::Allocate(CpuAllocator(), DType::kFloat, Shape{n * kMebibyte / 4});
}

TEST(MemoryAccountTest, WhatAThreadAllocatesIsChargedUntilItIsFreed) {
  const MemoryAccount::Ptr account = MemoryAccount::Open(MemoryAccount::kUnlimited);
  EXPECT_EQ(CurrentMemoryAccount(), nullptr);
  Tensor before = *Mebibytes(1);
  Tensor charged, text;
  {
    const ChargedTo scope(account.get());
    charged = *Mebibytes(2);
    text = *Tensor::Allocate(CpuAllocator(), DType::kString, Shape{kMebibyte});
    const Tensor tiny(DType::kFloat, Shape{2});
    const ChargedTo nobody(nullptr);
    const Tensor not_charged = *Mebibytes(1);
  }
  EXPECT_EQ(CurrentMemoryAccount(), nullptr);
  const auto text_bytes = static_cast<int64_t>(kMebibyte * sizeof(TString));
  EXPECT_NEAR(account->bytes_in_use(), 2 * kMebibyte + text_bytes, 1000);
  before = charged;  // another holder changes nothing
  charged = Tensor();
  EXPECT_NEAR(account->bytes_in_use(), 2 * kMebibyte + text_bytes, 1000);
  before = Tensor();
  EXPECT_NEAR(account->bytes_in_use(), text_bytes, 1000);
  text = Tensor();
  EXPECT_EQ(account->bytes_in_use(), 0);
}

TEST(MemoryAccountTest, BeyondTheLimitThereIsNone) {
  const MemoryAccount::Ptr account = MemoryAccount::Open(3 * kMebibyte);
  const ChargedTo scope(account.get());
  auto first = Mebibytes(2);
  ASSERT_OK(first);
  EXPECT_THAT(Mebibytes(1), IsError(StatusCode::kResourceExhausted,
                                    "bytes of at most 3145728, which leaves too little for "
                                    "float[262144]"));
  EXPECT_THAT(Tensor::Allocate(CpuAllocator(), DType::kFloat, Shape{int64_t{1} << 60}),
              IsError(StatusCode::kResourceExhausted, "of at most 3145728"));
  EXPECT_THAT(Tensor::Allocate(CpuAllocator(), DType::kString, Shape{kMebibyte}),
              IsError(StatusCode::kResourceExhausted, "of at most 3145728"));
  EXPECT_NEAR(account->bytes_in_use(), 2 * kMebibyte, 1000);
  *first = Tensor();
  EXPECT_OK(Mebibytes(2));
}

TEST(MemoryAccountTest, WhatIsChargedOutlivesTheOwner) {
  MemoryAccount::Ptr account = MemoryAccount::Open(8 * kMebibyte);
  std::vector<Tensor> kept;
  {
    const ChargedTo scope(account.get());
    for (int i = 0; i < 2; ++i) kept.push_back(*Mebibytes(1));
  }
  account.reset();
  kept.clear();  // frees the account with the last one, which the leak checker sees
}

TEST(MemoryAccountTest, ManyThreadsNeverPassTheLimit) {
  const MemoryAccount::Ptr account = MemoryAccount::Open(4 * kMebibyte);
  std::atomic<int> held = 0, refused = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        const ChargedTo scope(account.get());
        for (int i = 0; i < 500; ++i) {
          const int size = 1 + i % 3;
          const auto tensor = Mebibytes(size);
          if (!tensor.ok()) {
            ++refused;
            continue;
          }
          EXPECT_LE(held.fetch_add(size) + size, 4);
          std::this_thread::yield();
          held -= size;
        }
      });
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(account->bytes_in_use(), 0);
}

}  // namespace
}  // namespace tenon
