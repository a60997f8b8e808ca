// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/clock.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>

#include "distributed/protocol/worker_calls.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

TEST(ClockTest, ATimerThatIsCancelledIsForgottenAtOnce) {
  auto held = std::make_shared<int>(1);
  const Clock::Timer timer = SystemClock().CallAfter(std::chrono::hours(1), [held] { FAIL(); });
  EXPECT_EQ(held.use_count(), 2);
  SystemClock().CancelTimer(timer);
  EXPECT_EQ(held.use_count(), 1);
  SystemClock().CancelTimer(timer);  // is ignored
}

TEST(ClockTest, TimersComeInTheirOrder) {
  std::vector<int> order;
  std::promise<void> last;
  SystemClock().CallAfter(std::chrono::milliseconds(60), [&] {
    order.push_back(2);
    last.set_value();
  });
  SystemClock().CallAfter(std::chrono::milliseconds(20), [&] { order.push_back(1); });
  last.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(ClockTest, APauseEndsWhenItIsCancelled) {
  EXPECT_OK(Pause(SystemClock(), std::chrono::milliseconds(1), nullptr));
  Cancellation cancellation;
  SystemClock().CallAfter(std::chrono::milliseconds(20),
                          [&] { cancellation.Cancel(Aborted("test")); });
  EXPECT_EQ(Pause(SystemClock(), std::chrono::hours(1), &cancellation), Aborted("test"));
  EXPECT_EQ(Pause(SystemClock(), std::chrono::hours(1), &cancellation), Aborted("test"));
}

}  // namespace
}  // namespace tenon
