// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/machine_clock.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/execute/time_limit.h"
#include "tests/testing/simulated_clock.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using std::chrono::milliseconds;

TEST(MachineClockTest, ATimerThatIsCancelledIsForgottenAtOnce) {
  auto held = std::make_shared<int>(1);
  const Clock::Timer timer = MachineClock().CallAfter(std::chrono::hours(1), [held] { FAIL(); });
  EXPECT_EQ(held.use_count(), 2);
  MachineClock().CancelTimer(timer);
  EXPECT_EQ(held.use_count(), 1);
  MachineClock().CancelTimer(timer);  // is ignored
}

TEST(MachineClockTest, TimersComeInTheirOrder) {
  std::vector<int> order;
  std::promise<void> last;
  MachineClock().CallAfter(std::chrono::milliseconds(60), [&] {
    order.push_back(2);
    last.set_value();
  });
  MachineClock().CallAfter(std::chrono::milliseconds(20), [&] { order.push_back(1); });
  last.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(MachineClockTest, AWaitEndsWithANotificationOrAtItsEnd) {
  Clock& clock = MachineClock();
  Mutex mu;
  CondVar changed;
  bool is_set = false;
  const std::jthread setter([&] {
    MutexLock lock(mu);
    is_set = true;
    changed.NotifyAll();
  });
  MutexLock lock(mu);
  while (!is_set) EXPECT_TRUE(clock.WaitUntil(changed, mu, clock.Now() + std::chrono::hours(1)));
  const Clock::Time end = clock.Now() + milliseconds(20);
  while (clock.WaitUntil(changed, mu, end)) {
  }
  EXPECT_GE(clock.Now(), end);
}

TEST(MachineClockTest, ASleepLastsAsLongAsItWasTold) {
  const Clock::Time begin = MachineClock().Now();
  MachineClock().SleepFor(milliseconds(20));
  EXPECT_GE(MachineClock().Now() - begin, milliseconds(20));
}

TEST(TimeLimitTest, CancelsWhenItHasPassedAndNotAfterItsOwnEnd) {
  testing::SimulatedClock clock;
  Cancellation cancellation;
  const Status why = DeadlineExceeded("too late");
  {
    const TimeLimit limit(cancellation, milliseconds(100), why, clock);
    clock.SleepFor(milliseconds(99));
  }
  clock.SleepFor(milliseconds(99));
  EXPECT_FALSE(cancellation.cancelled());
  const TimeLimit limit(cancellation, milliseconds(100), why, clock);
  clock.SleepFor(milliseconds(100));
  EXPECT_EQ(cancellation.status(), why);
}

TEST(SimulatedClockTest, WhoWaitsMakesTheCallsThatAreDueAndNoTimeIsLost) {
  testing::SimulatedClock clock;
  const Clock::Time begin = clock.Now();
  std::vector<milliseconds> calls;
  const auto call = [&] {
    calls.push_back(std::chrono::duration_cast<milliseconds>(clock.Now() - begin));
  };
  clock.CallAfter(std::chrono::hours(2), call);
  clock.CallAfter(milliseconds(5), [&] { clock.CallAfter(milliseconds(2), call); });
  clock.CancelTimer(clock.CallAfter(milliseconds(3), call));
  clock.SleepFor(std::chrono::hours(1));
  EXPECT_EQ(calls, std::vector<milliseconds>{milliseconds(7)});
  EXPECT_EQ(clock.Now() - begin, std::chrono::hours(1));
  Mutex mu;
  CondVar changed;
  MutexLock lock(mu);
  EXPECT_TRUE(clock.WaitUntil(changed, mu, begin + std::chrono::hours(3)));
  EXPECT_EQ(clock.Now() - begin, std::chrono::hours(2));
  EXPECT_FALSE(clock.WaitUntil(changed, mu, begin + std::chrono::hours(3)));
  EXPECT_EQ(clock.Now() - begin, std::chrono::hours(3));
}

}  // namespace
}  // namespace tenon
