// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/polling/spin_limit.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Clock::Time kStart{seconds(100)};
constexpr Clock::Duration kNothing{0};

TEST(SpinLimitTest, ItGrowsUntilItWouldHaveBeenLongEnough) {
  SpinLimit limit;
  EXPECT_EQ(limit.At(kStart), kNothing);
  for (const int wanted : {50, 100, 200, 400, 400}) {
    limit.Learn(microseconds(300));
    EXPECT_EQ(limit.At(kStart), microseconds(wanted));
  }
  for (int i = 0; i < 9; ++i) limit.Learn(microseconds(999));
  EXPECT_EQ(limit.At(kStart), milliseconds(1));
}

TEST(SpinLimitTest, WhoGetsNothingSoonSleepsAtOnce) {
  SpinLimit limit;
  for (int i = 0; i < 9; ++i) limit.Learn(microseconds(900));
  limit.Learn(milliseconds(1));
  EXPECT_EQ(limit.At(kStart), kNothing);
  limit.Learn(seconds(20));
  EXPECT_EQ(limit.At(kStart), kNothing);
}

TEST(SpinLimitTest, OthersComeFirstTheLongerTheMoreOften) {
  SpinLimit limit;
  limit.Learn(microseconds(40));
  Clock::Time now = kStart;
  for (const int pause : {5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000}) {
    limit.MakeWay(now);
    EXPECT_EQ(limit.At(now + milliseconds(pause) - microseconds(1)), kNothing);
    now += milliseconds(pause);
    EXPECT_EQ(limit.At(now), microseconds(50));
  }
  // Messages that came while nobody else wanted the processor.
  for (int i = 0; i < 100; ++i) limit.Learn(microseconds(30));
  limit.MakeWay(now);
  EXPECT_EQ(limit.At(now + milliseconds(5)), microseconds(50));
}

}  // namespace
}  // namespace tenon
