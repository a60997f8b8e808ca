// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/worker_calls.h"

#include <gtest/gtest.h>

#include "runtime/device/machine_clock.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

TEST(PauseTest, APauseEndsWhenItIsCancelled) {
  EXPECT_OK(Pause(MachineClock(), std::chrono::milliseconds(1), nullptr));
  Cancellation cancellation;
  MachineClock().CallAfter(std::chrono::milliseconds(20),
                           [&] { cancellation.Cancel(Aborted("test")); });
  EXPECT_EQ(Pause(MachineClock(), std::chrono::hours(1), &cancellation), Aborted("test"));
  EXPECT_EQ(Pause(MachineClock(), std::chrono::hours(1), &cancellation), Aborted("test"));
}

}  // namespace
}  // namespace tenon
