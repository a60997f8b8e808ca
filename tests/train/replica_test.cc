// SPDX-License-Identifier: Apache-2.0
#include "train/replica.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/simulated_clock.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"
#include "train/one_line.h"

namespace tenon {
namespace {

using std::chrono::milliseconds;
using tenon::testing::IsError;
using tenon::testing::TestCluster;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OtherWorkersTest : public ::testing::Test {
 protected:
  OtherWorkersTest() { cluster_.StartAll(); }

  Status Wait(const std::function<StatusOr<int64_t>()>& step, milliseconds patience) {
    return WaitForOtherWorkers(
        cluster_.at("worker", 0), step, [this](const std::string& line) { lines_.push_back(line); },
        patience, clock_);
  }

  testing::SimulatedClock clock_;
  TestCluster cluster_{1, 3};
  std::vector<std::string> lines_;
};

TEST_F(OtherWorkersTest, TheChiefWaitsUntilNoneAnswers) {
  cluster_.Stop("worker", 2);
  int64_t steps = 0;
  bool stopped = false;
  const auto step = [&]() -> StatusOr<int64_t> {
    // The last one ends while it is asked how far they are.
    if (++steps == 10) {
      cluster_.Stop("worker", 1);
      stopped = true;
    }
    return steps;
  };
  EXPECT_OK(Wait(step, std::chrono::minutes(10)));
  EXPECT_TRUE(stopped);
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(OtherWorkersTest, WhoMakesNoStepIsNotWaitedForWithoutEnd) {
  const Clock::Time begin = clock_.Now();
  EXPECT_OK(Wait([] { return 7; }, milliseconds(300)));
  EXPECT_EQ(clock_.Now() - begin, milliseconds(300));
  EXPECT_THAT(lines_, ElementsAre(::testing::AllOf(
                          HasSubstr("not waiting any longer for /job:worker/replica:0/task:1 at "),
                          HasSubstr(", /job:worker/replica:0/task:2 at "),
                          HasSubstr(", which made no step for 0.3 s"))));
}

TEST_F(OtherWorkersTest, AStepCounterThatCannotBeReadIsTheError) {
  EXPECT_THAT(Wait([] { return Unavailable("the parameter server is gone"); }, milliseconds(300)),
              IsError(StatusCode::kUnavailable, "the parameter server is gone"));
}

TEST(OneLineTest, TheReasonFollowsTheTaskAndTheNodeLinesGo) {
  EXPECT_EQ(OneLine("From /job:ps/replica:0/task:0:\nnode 'save': disk full\n\t [[{{node save}}]]\n"
                    "\t [[{{node save}}]]"),
            "From /job:ps/replica:0/task:0: node 'save': disk full");
  EXPECT_EQ(OneLine("no session"), "no session");
}

}  // namespace
}  // namespace tenon
