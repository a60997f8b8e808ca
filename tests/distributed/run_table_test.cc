// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/run_table.h"

#include <gtest/gtest.h>

#include "runtime/device/machine_clock.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;

class RunTableTest : public ::testing::Test {
 protected:
  Status Run(int64_t step, const std::string& session = "s") {
    return runs_.Run(step, session, nullptr).status();
  }
  RunTable runs_{"/job:worker/task:0", MachineClock()};
};

TEST_F(RunTableTest, StepsThatNobodyCleansUpAreRefusedInTheEnd) {
  constexpr auto kMost = static_cast<int64_t>(RunTable::kMaxRuns);
  for (int64_t step = 0; step < kMost; ++step) ASSERT_OK(Run(step, step == 5 ? "other" : "s"));
  const auto refused = IsError(StatusCode::kResourceExhausted,
                               "/job:worker/task:0 has 262144 steps that run or have not been "
                               "cleaned up, as many as it may");
  EXPECT_THAT(Run(kMost), refused);
  EXPECT_OK(Run(7));  // another part of a step that is there
  EXPECT_OK(runs_.BeginReceive(kMost + 1));
  EXPECT_THAT(Run(kMost + 1), refused);
  runs_.EndReceive(kMost + 1);
  EXPECT_OK(Run(kMost + 2, kGroupSession));  // the devices that meet there would wait
  runs_.Remove(kMost + 2);
  runs_.Remove(3);
  EXPECT_OK(Run(kMost));
  EXPECT_THAT(Run(kMost + 1), refused);
  runs_.RemoveSession("other");
  EXPECT_OK(Run(kMost + 1));
  EXPECT_THAT(Run(kMost + 2), refused);
  runs_.RemoveSession("s");
  for (int64_t step = 0; step < 10; ++step) EXPECT_OK(Run(2 * kMost + step));
}

TEST_F(RunTableTest, AStepThatHasBeenCleanedUpDoesNotComeBack) {
  EXPECT_OK(Run(1));
  runs_.Remove(1);
  runs_.Remove(2);  // before its RunGraph
  for (const int64_t step : {1, 2}) {
    EXPECT_THAT(Run(step), IsError(StatusCode::kAborted, "has been cleaned up"));
    EXPECT_THAT(runs_.BeginReceive(step).status(),
                IsError(StatusCode::kAborted, "has been cleaned up"));
  }
}

}  // namespace
}  // namespace tenon
