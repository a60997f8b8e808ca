// SPDX-License-Identifier: Apache-2.0
#include "train/sessions/session_starter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/build/building.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/simulated_clock.h"
#include "tests/testing/status_matchers.h"
#include "train/variables.h"

namespace tenon {
namespace {

using std::chrono::milliseconds;
using tenon::testing::IsError;
using ::testing::HasSubstr;

/// A worker that waits for a chief which does not come.
class SessionStarterTest : public ::testing::Test {
 protected:
  SessionStarterTest() : graph_(AllOps()), building_(graph_), weights_("weights", 1.0f) {
    options_.is_chief = false;
    options_.clock = &clock_;
    options_.recovery_wait = milliseconds(200);
    options_.notice_interval = milliseconds(5000);
    options_.chief_return_limit = milliseconds(30000);
    options_.ready_deadline = milliseconds(100000);
    options_.notice = [this](const std::string& line) { last_notice_ = line; };
  }
  Status Prepare(bool has_trained) {
    const SessionStarter starter(options_);
    return starter.Prepare([this] { return MakeLocalSession(graph_); }, has_trained).status();
  }

  testing::SimulatedClock clock_;
  Graph graph_;
  GraphBuilding building_;
  Variable weights_;
  SessionStarterOptions options_;
  std::string last_notice_;
};

TEST_F(SessionStarterTest, AChiefThatIsGoneIsNotWaitedForByWhoHasTrainedWithIt) {
  options_.chief_life = [] { return Unavailable("worker 0 at a:1: connection refused"); };
  EXPECT_THAT(Prepare(true), IsError(StatusCode::kDeadlineExceeded,
                                     "the chief is gone and did not return within 30 s: worker 0 "
                                     "at a:1: connection refused"));
}

TEST_F(SessionStarterTest, AChiefThatHasNotBegunIsWaitedForAndTheReasonIsSaid) {
  options_.chief_life = [] { return Unavailable("connection refused"); };
  EXPECT_THAT(Prepare(false), IsError(StatusCode::kDeadlineExceeded,
                                      "the chief did not initialise these variables within 100 s: "
                                      "weights"));
  EXPECT_THAT(last_notice_, HasSubstr("to initialise weights: connection refused"));
}

TEST_F(SessionStarterTest, AChiefThatReturnsHasItsTimeAgain) {
  int asked = 0;
  // Twice there is no connection, then the chief answers, and so on.
  options_.chief_life = [&asked] {
    return ++asked % 3 == 0 ? OkStatus() : Unavailable("connection refused");
  };
  EXPECT_THAT(Prepare(true), IsError(StatusCode::kDeadlineExceeded, "did not initialise"));
  EXPECT_GT(asked, 6);
}

TEST_F(SessionStarterTest, AChiefThatDoesNotAnswerInTimeMayBeBusy) {
  options_.chief_life = [] { return DeadlineExceeded("no answer in 2 s"); };
  EXPECT_THAT(Prepare(true), IsError(StatusCode::kDeadlineExceeded, "did not initialise"));
  EXPECT_THAT(last_notice_, HasSubstr("no answer in 2 s"));
}

}  // namespace
}  // namespace tenon
