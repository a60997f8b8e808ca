// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/attribute.h"

#include <gtest/gtest.h>

#include <thread>

namespace tenon {
namespace {

TEST(AttributeMapTest, ACopyThatChangesLeavesTheOtherAsItWas) {
  AttributeMap first = {{"T", DType::kFloat}, {"N", 3}};
  AttributeMap second = first;
  EXPECT_TRUE(second.Shares(first));
  second.Set("N", 4);
  second.Set("axis", 1);
  EXPECT_FALSE(second.Shares(first));
  EXPECT_EQ(first.size(), 2u);
  EXPECT_EQ(first.GetOr<int64_t>("N", 0), 3);
  EXPECT_EQ(second.GetOr<int64_t>("N", 0), 4);

  AttributeMap third = second;
  second.Erase("axis");
  EXPECT_EQ(second.size(), 2u);
  EXPECT_EQ(third.size(), 3u);
  // What it does not have is no reason to part.
  third = second;
  third.Erase("axis");
  EXPECT_TRUE(third.Shares(second));
}

TEST(AttributeMapTest, MovesAndAssignmentsKeepTheAttributes) {
  AttributeMap first = {{"name", "a"}};
  AttributeMap moved = std::move(first);
  first = moved;
  const AttributeMap& itself = first;
  first = itself;
  moved = AttributeMap();
  EXPECT_TRUE(moved.empty());
  EXPECT_EQ(moved.begin(), moved.end());
  EXPECT_EQ(first.GetOr<std::string>("name", ""), "a");
  AttributeMap empty = moved;
  empty.Set("x", true);
  EXPECT_TRUE(moved.empty());
}

TEST(AttributeMapTest, ThreadsMayChangeTheirOwnCopies) {
  constexpr int kThreads = 4, kTimes = 2000;
  AttributeMap map = {{"shared", 0}};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([own = map, t]() mutable {
      for (int i = 1; i <= kTimes; ++i) {
        const AttributeMap before = own;
        own.Set("shared", t * kTimes + i);
        EXPECT_EQ(before.GetOr<int64_t>("shared", -1), i == 1 ? 0 : t * kTimes + i - 1);
      }
    });
  }
  map.Set("shared", -1);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(map.GetOr<int64_t>("shared", 0), -1);
}

}  // namespace
}  // namespace tenon
