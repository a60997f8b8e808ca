// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/job_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/testing/simulated_clock.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using std::chrono::milliseconds;
using tenon::testing::IsError;
using tenon::testing::SimulatedClock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two workers that live, and answer, when the test says so, in simulated time.
class JobEndTest : public ::testing::Test {
 protected:
  void After(milliseconds delay, std::function<void()> happens) {
    clock_.CallAfter(delay, std::move(happens));
  }
  /// Reports after `delay` that both workers have ended well.
  void EndBothAfter(milliseconds delay) {
    After(delay, [this] {
      for (const int task : {0, 1}) EXPECT_OK(job_end_.Report("worker", task, OkStatus()));
    });
  }
  milliseconds Since(Clock::Time begin) {
    return std::chrono::duration_cast<milliseconds>(clock_.Now() - begin);
  }

  const ClusterSpec cluster_ = *ClusterSpec::Parse("worker=a:1,b:2");
  SimulatedClock clock_;
  std::array<bool, 2> alive_{};
  JobEnd job_end_{
      cluster_, clock_,
      [this](const std::string&, int task, auto done) { done(alive_[task] ? OkStatus() : away_); },
      [this](const std::string& line) { lines_.push_back(line); }};

  /// How those do not answer that do not live.
  Status away_ = DeadlineExceeded("no answer in time");
  std::vector<std::string> lines_;
};

TEST_F(JobEndTest, AWorkerThatLivesMayTakeLongAfterTheOthersEnd) {
  alive_[1] = true;
  EXPECT_OK(job_end_.Report("worker", 0, OkStatus()));
  EndBothAfter(milliseconds(3000));
  EXPECT_OK(job_end_.Wait("worker", {milliseconds(1000)}));
}

TEST_F(JobEndTest, AWorkerMayComeLateWhileAnotherLives) {
  alive_[0] = true;
  EndBothAfter(milliseconds(3000));
  EXPECT_OK(job_end_.Wait("worker", {milliseconds(1000)}));
}

TEST_F(JobEndTest, WorkersThatNeverComeAreNamed) {
  EXPECT_THAT(job_end_.Wait("worker", {milliseconds(100)}),
              IsError(StatusCode::kDeadlineExceeded,
                      "not all tasks have come within 0.1 s: /job:worker/replica:0/task:0 at a:1 "
                      "(no answer in time), /job:worker/replica:0/task:1 at b:2 (no answer"));
}

TEST_F(JobEndTest, AWorkerThatNeverComesIsNamedWhenTheOthersHaveEnded) {
  EXPECT_OK(job_end_.Report("worker", 0, OkStatus()));
  EXPECT_THAT(job_end_.Wait("worker", {milliseconds(100)}),
              IsError(StatusCode::kDeadlineExceeded,
                      "not all tasks have come within 0.1 s: /job:worker/replica:0/task:1 at b:2 "
                      "(no answer in time)"));
}

TEST_F(JobEndTest, AWorkerMayComeAsLateAsItIsAllowed) {
  away_ = Unavailable("task /job:worker/replica:0/task:1 at b:2 is unavailable: refused");
  EXPECT_OK(job_end_.Report("worker", 0, OkStatus()));
  const Clock::Time begin = clock_.Now();
  EXPECT_THAT(job_end_.Wait("worker", {milliseconds(60000), milliseconds(5000)}),
              IsError(StatusCode::kDeadlineExceeded,
                      "not all tasks have come within 5 s: /job:worker/replica:0/task:1 at b:2 "
                      "(unavailable: refused)"));
  EXPECT_LE(Since(begin), milliseconds(7000));
}

TEST_F(JobEndTest, AWorkerMayReturnAsLateAsItMayCome) {
  away_ = Unavailable("connection refused");
  alive_[0] = alive_[1] = true;
  After(milliseconds(1000), [this] { alive_[0] = false; });
  EXPECT_THAT(job_end_.Wait("worker", {milliseconds(600000), milliseconds(100000)}),
              IsError(StatusCode::kDeadlineExceeded, "did not return within 100 s"));
}

TEST_F(JobEndTest, WhoHasNotComeIsToldToWhoAsks) {
  away_ = Unavailable("refused");
  EXPECT_THAT(job_end_.Awaited(), ElementsAre());
  alive_[0] = true;
  After(milliseconds(3000), [this] {
    EXPECT_THAT(job_end_.Awaited(), ElementsAre("/job:worker/replica:0/task:1 at b:2 (refused)"));
  });
  EndBothAfter(milliseconds(4000));
  EXPECT_OK(job_end_.Wait("worker", {milliseconds(60000), milliseconds(20000)}));
  EXPECT_THAT(job_end_.Awaited(), ElementsAre());
}

TEST_F(JobEndTest, AWorkerThatVanishesIsNamedThoughAnotherLives) {
  alive_[0] = alive_[1] = true;
  After(milliseconds(1500), [this] { alive_[0] = false; });
  EXPECT_THAT(
      job_end_.Wait("worker", {milliseconds(1000)}),
      IsError(StatusCode::kDeadlineExceeded, "1 s from /job:worker/replica:0/task:0 at a:1"));
}

TEST_F(JobEndTest, AWorkerToWhichTheConnectionBreaksIsAnnouncedAtOnceAndMayReturn) {
  away_ = Unavailable("connection refused");
  alive_[0] = alive_[1] = true;
  After(milliseconds(1500), [this] { alive_[0] = false; });
  After(milliseconds(3000), [this] {
    EXPECT_EQ(lines_.size(), 1);
    alive_[0] = true;
  });
  EndBothAfter(milliseconds(5000));
  EXPECT_OK(job_end_.Wait("worker", {milliseconds(4000)}));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("task:0 at a:1 is gone; waiting for its return: "
                                            "connection refused"),
                                  HasSubstr("task:0 at a:1 is back")));
}

TEST_F(JobEndTest, AWorkerThatIsGoneAndDoesNotReturnIsNamedWithTheReason) {
  away_ = Unavailable("connection refused");
  alive_[0] = alive_[1] = true;
  After(milliseconds(1000), [this] { alive_[0] = false; });
  EXPECT_THAT(job_end_.Wait("worker", {milliseconds(2000)}),
              IsError(StatusCode::kDeadlineExceeded,
                      "/job:worker/replica:0/task:0 at a:1 is gone and did not return within 1 s: "
                      "connection refused"));
}

TEST_F(JobEndTest, AWorkerThatIsGoneAndOpensASessionIsBackBeforeItIsAskedAgain) {
  away_ = Unavailable("connection refused");
  alive_[0] = alive_[1] = true;
  const std::string task = "/job:worker/replica:0/task:0";
  After(milliseconds(1900), [this] { alive_[0] = false; });
  // It is seen to be gone at 2 s, and has until 5 s to return.
  After(milliseconds(4999), [&] { job_end_.Heard(task, 8); });
  After(milliseconds(5000), [this] { alive_[0] = true; });
  EndBothAfter(milliseconds(9000));
  EXPECT_OK(job_end_.Wait("worker", {milliseconds(6000)}));
  EXPECT_THAT(lines_,
              ElementsAre(HasSubstr("task:0 at a:1 is gone"), HasSubstr("task:0 at a:1 is back")));
}

TEST_F(JobEndTest, WhoIsWaitedForIsSaidEveryFewSeconds) {
  alive_[0] = true;
  EndBothAfter(milliseconds(6000));
  EXPECT_OK(job_end_.Wait("worker", {milliseconds(1000)}));
  EXPECT_THAT(lines_, ElementsAre("waiting for /job:worker/replica:0/task:1 at b:2 (no "
                                  "answer in time)"));
}

TEST_F(JobEndTest, AnotherProcessOfATaskTakesBackTheReportOfItsEnd) {
  const std::string task = "/job:worker/replica:0/task:0";
  alive_[0] = alive_[1] = true;
  job_end_.Heard(task, 7);
  EXPECT_OK(job_end_.Report("worker", 0, OkStatus()));
  job_end_.Heard(task, 7);  // sent before the report
  EXPECT_THAT(job_end_.Ended(), ElementsAre(task));
  job_end_.Heard(task, 8);
  EXPECT_THAT(job_end_.Ended(), ElementsAre());
  EXPECT_OK(job_end_.Report("worker", 1, OkStatus()));
  After(milliseconds(1000), [this] { EXPECT_OK(job_end_.Report("worker", 0, OkStatus())); });
  const Clock::Time begin = clock_.Now();
  EXPECT_OK(job_end_.Wait("worker", {milliseconds(4000)}));
  EXPECT_EQ(Since(begin), milliseconds(1000));
}

TEST_F(JobEndTest, TheReportOfAFailureIsNotTakenBack) {
  EXPECT_OK(job_end_.Report("worker", 0, Internal("out of luck")));
  job_end_.Heard("/job:worker/replica:0/task:0", 8);
  EXPECT_THAT(job_end_.Wait("worker", {milliseconds(100)}),
              IsError(StatusCode::kAborted, "task:0 failed: out of luck"));
}

TEST_F(JobEndTest, AWorkerThatASignalHasEndedMayReturnWhileOthersEndByThemselves) {
  EXPECT_OK(job_end_.Report("worker", 0, Cancelled("ended by signal 15")));
  EXPECT_OK(job_end_.Report("worker", 1, OkStatus()));
  const Clock::Time begin = clock_.Now();
  // Half of the limit is the time to return.
  EXPECT_OK(job_end_.Wait("worker", {milliseconds(2000)}));
  EXPECT_EQ(Since(begin), milliseconds(1000));
}

TEST_F(JobEndTest, WhenSignalsHaveEndedAllTheJobHasEnded) {
  for (const int task : {0, 1}) EXPECT_OK(job_end_.Report("worker", task, Cancelled("signal 2")));
  const Clock::Time begin = clock_.Now();
  EXPECT_OK(job_end_.Wait("worker", {milliseconds(20000)}));
  EXPECT_EQ(Since(begin), milliseconds(0));
}

TEST_F(JobEndTest, AJobThatIsToEndExpectsNobodyBack) {
  const std::string task = "/job:worker/replica:0/task:1";
  EXPECT_FALSE(job_end_.ExpectEnd("worker"));  // nobody lives
  job_end_.Heard(task, 7);
  EXPECT_TRUE(job_end_.ExpectEnd("worker"));
  EXPECT_OK(job_end_.Report("worker", 0, Cancelled("signal 2")));
  EXPECT_OK(job_end_.Report("worker", 1, OkStatus()));
  EXPECT_FALSE(job_end_.ExpectEnd("worker"));
  const Clock::Time begin = clock_.Now();
  EXPECT_OK(job_end_.Wait("worker", {milliseconds(20000)}));
  EXPECT_EQ(Since(begin), milliseconds(0));
}

TEST_F(JobEndTest, AJobThatIsToEndDoesNotWaitForWhoHasGoneWithoutAReport) {
  away_ = Unavailable("connection refused");
  alive_[0] = true;  // the other one was never there
  const Clock::Time begin = clock_.Now();
  After(milliseconds(1000), [this] { EXPECT_TRUE(job_end_.ExpectEnd("worker")); });
  After(milliseconds(1500), [this] { alive_[0] = false; });
  EXPECT_OK(job_end_.Wait("worker", {milliseconds(20000)}));
  EXPECT_GT(Since(begin), milliseconds(1500));
  EXPECT_LE(Since(begin), milliseconds(2000));
}

TEST_F(JobEndTest, WhoIsNotThereYetIsSaidWithTheReason) {
  away_ = Unavailable("connection refused");
  alive_[0] = true;
  EndBothAfter(milliseconds(6000));
  EXPECT_OK(job_end_.Wait("worker", {milliseconds(1000)}));
  EXPECT_THAT(lines_, ElementsAre("waiting for /job:worker/replica:0/task:1 at b:2 (connection "
                                  "refused)"));
}

TEST_F(JobEndTest, AWorkerThatDoesNotAnswerAtAllIsAskedOnce) {
  int asked = 0;
  std::vector<std::function<void(const Status&)>> unanswered;
  JobEnd job_end(cluster_, clock_,
                 [&](const std::string&, int, std::function<void(const Status&)> done) {
                   ++asked;
                   unanswered.push_back(std::move(done));
                 });
  EXPECT_THAT(job_end.Wait("worker", {milliseconds(1000)}),
              IsError(StatusCode::kDeadlineExceeded, "not all tasks have come within"));
  EXPECT_EQ(asked, 2);
}

TEST_F(JobEndTest, WithoutALimitNobodyIsAsked) {
  JobEnd job_end(cluster_, clock_, [](const std::string&, int, std::function<void(const Status&)>) {
    ADD_FAILURE() << "a task was asked";
  });
  After(milliseconds(100), [&] { job_end.Stop(); });
  EXPECT_THAT(job_end.Wait("worker", {milliseconds(0)}),
              IsError(StatusCode::kCancelled, "told to shut down"));
}

}  // namespace
}  // namespace tenon
