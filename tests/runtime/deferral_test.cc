// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/deferral.h"

#include <gtest/gtest.h>

#include <string>

namespace tenon {
namespace {

TEST(DeferralTest, WithoutAScopeATaskRunsAtOnce) {
  bool ran = false;
  Defer([&] { ran = true; });
  EXPECT_TRUE(ran);
  EXPECT_TRUE(DeferralScope::Empty());
}

TEST(DeferralTest, TheOutermostScopeRunsTheTasksInTheirOrder) {
  std::string ran;
  {
    const DeferralScope outer;
    Defer([&] { ran += 'a'; });
    {
      const DeferralScope inner;
      Defer([&] { ran += 'b'; });
    }
    EXPECT_EQ(ran, "");
    EXPECT_FALSE(DeferralScope::Empty());
    Defer([&] {
      ran += 'c';
      Defer([&] { ran += 'e'; });
    });
    Defer([&] { ran += 'd'; });
  }
  EXPECT_EQ(ran, "abcde");
}

TEST(DeferralTest, RunNowRunsWhatHasBeenPutOff) {
  std::string ran;
  const DeferralScope scope;
  Defer([&] { ran += 'a'; });
  DeferralScope::RunNow();
  EXPECT_EQ(ran, "a");
  EXPECT_TRUE(DeferralScope::Empty());
}

}  // namespace
}  // namespace tenon
