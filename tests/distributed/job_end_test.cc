// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/job_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using std::chrono::milliseconds;
using tenon::testing::IsError;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two workers that live, and answer, when the test says so.
class JobEndTest : public ::testing::Test {
 protected:
  /// Reports after `delay` that both workers have ended well.
  std::jthread EndBothAfter(milliseconds delay) {
    return std::jthread([this, delay] {
      std::this_thread::sleep_for(delay);
      for (const int task : {0, 1}) EXPECT_OK(job_end_.Report("worker", task, OkStatus()));
    });
  }

  const ClusterSpec cluster_ = *ClusterSpec::Parse("worker=a:1,b:2");
  std::array<std::atomic<bool>, 2> alive_{};
  JobEnd job_end_{
      cluster_,
      [this](const std::string&, int task, auto done) { done(alive_[task] ? OkStatus() : away_); },
      [this](const std::string& line) {
        MutexLock lock(mu_);
        lines_.push_back(line);
      }};

  /// How those do not answer that do not live.
  Status away_ = DeadlineExceeded("no answer in time");
  Mutex mu_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mu_);
};

TEST_F(JobEndTest, AWorkerThatLivesMayTakeLongAfterTheOthersEnd) {
  alive_[1] = true;
  EXPECT_OK(job_end_.Report("worker", 0, OkStatus()));
  const std::jthread end = EndBothAfter(milliseconds(3000));
  EXPECT_OK(job_end_.Wait("worker", milliseconds(1000)));
}

TEST_F(JobEndTest, AWorkerMayComeLateWhileAnotherLives) {
  alive_[0] = true;
  const std::jthread end = EndBothAfter(milliseconds(3000));
  EXPECT_OK(job_end_.Wait("worker", milliseconds(1000)));
}

TEST_F(JobEndTest, WorkersThatNeverComeAreNamed) {
  EXPECT_THAT(job_end_.Wait("worker", milliseconds(100)),
              IsError(StatusCode::kDeadlineExceeded,
                      "no sign of life for 0.1 s from /job:worker/replica:0/task:0 at a:1 (never "
                      "heard of), /job:worker/replica:0/task:1 at b:2 (never heard of)"));
}

TEST_F(JobEndTest, AWorkerThatNeverComesIsNamedWhenTheOthersHaveEnded) {
  EXPECT_OK(job_end_.Report("worker", 0, OkStatus()));
  EXPECT_THAT(job_end_.Wait("worker", milliseconds(100)),
              IsError(StatusCode::kDeadlineExceeded,
                      "0.1 s from /job:worker/replica:0/task:1 at b:2 (never heard of)"));
}

TEST_F(JobEndTest, AWorkerThatVanishesIsNamedThoughAnotherLives) {
  alive_[0] = alive_[1] = true;
  const std::jthread death([this] {
    std::this_thread::sleep_for(milliseconds(1500));
    alive_[0] = false;
  });
  EXPECT_THAT(
      job_end_.Wait("worker", milliseconds(1000)),
      IsError(StatusCode::kDeadlineExceeded, "1 s from /job:worker/replica:0/task:0 at a:1"));
}

TEST_F(JobEndTest, AWorkerToWhichTheConnectionBreaksIsAnnouncedAtOnceAndMayReturn) {
  away_ = Unavailable("connection refused");
  alive_[0] = alive_[1] = true;
  const auto wait_for_line = [this](size_t number) {
    while (true) {
      std::this_thread::sleep_for(milliseconds(20));
      MutexLock lock(mu_);
      if (lines_.size() >= number) return;
    }
  };
  const std::jthread life([&] {
    std::this_thread::sleep_for(milliseconds(1500));
    alive_[0] = false;
    wait_for_line(1);
    alive_[0] = true;
    wait_for_line(2);
    for (const int task : {0, 1}) EXPECT_OK(job_end_.Report("worker", task, OkStatus()));
  });
  EXPECT_OK(job_end_.Wait("worker", milliseconds(4000)));
  MutexLock lock(mu_);
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("task:0 at a:1 is gone; waiting for its return: "
                                            "connection refused"),
                                  HasSubstr("task:0 at a:1 is back")));
}

TEST_F(JobEndTest, AWorkerThatIsGoneAndDoesNotReturnIsNamedWithTheReason) {
  away_ = Unavailable("connection refused");
  alive_[0] = alive_[1] = true;
  const std::jthread death([this] {
    std::this_thread::sleep_for(milliseconds(1000));
    alive_[0] = false;
  });
  EXPECT_THAT(job_end_.Wait("worker", milliseconds(2000)),
              IsError(StatusCode::kDeadlineExceeded,
                      "/job:worker/replica:0/task:0 at a:1 is gone and did not return within 1 s: "
                      "connection refused"));
}

TEST_F(JobEndTest, WhoIsWaitedForIsSaidEveryFewSeconds) {
  alive_[0] = true;
  const std::jthread end = EndBothAfter(milliseconds(6000));
  EXPECT_OK(job_end_.Wait("worker", milliseconds(1000)));
  MutexLock lock(mu_);
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
  std::atomic<bool> ended{false};
  const std::jthread end([&] {
    std::this_thread::sleep_for(milliseconds(1000));
    EXPECT_FALSE(ended);
    EXPECT_OK(job_end_.Report("worker", 0, OkStatus()));
  });
  EXPECT_OK(job_end_.Wait("worker", milliseconds(4000)));
  ended = true;
}

TEST_F(JobEndTest, TheReportOfAFailureIsNotTakenBack) {
  EXPECT_OK(job_end_.Report("worker", 0, Internal("out of luck")));
  job_end_.Heard("/job:worker/replica:0/task:0", 8);
  EXPECT_THAT(job_end_.Wait("worker", milliseconds(100)),
              IsError(StatusCode::kAborted, "task:0 failed: out of luck"));
}

TEST_F(JobEndTest, AWorkerThatASignalHasEndedMayReturnWhileOthersEndByThemselves) {
  EXPECT_OK(job_end_.Report("worker", 0, Cancelled("ended by signal 15")));
  EXPECT_OK(job_end_.Report("worker", 1, OkStatus()));
  const auto begin = std::chrono::steady_clock::now();
  // Half of the limit is the time to return.
  EXPECT_OK(job_end_.Wait("worker", milliseconds(2000)));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(900));
}

TEST_F(JobEndTest, WhenSignalsHaveEndedAllTheJobHasEnded) {
  for (const int task : {0, 1}) EXPECT_OK(job_end_.Report("worker", task, Cancelled("signal 2")));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_OK(job_end_.Wait("worker", milliseconds(20000)));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(2000));
}

TEST_F(JobEndTest, AJobThatIsToEndExpectsNobodyBack) {
  const std::string task = "/job:worker/replica:0/task:1";
  EXPECT_FALSE(job_end_.ExpectEnd("worker"));  // nobody lives
  job_end_.Heard(task, 7);
  EXPECT_TRUE(job_end_.ExpectEnd("worker"));
  EXPECT_OK(job_end_.Report("worker", 0, Cancelled("signal 2")));
  EXPECT_OK(job_end_.Report("worker", 1, OkStatus()));
  EXPECT_FALSE(job_end_.ExpectEnd("worker"));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_OK(job_end_.Wait("worker", milliseconds(20000)));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(2000));
}

TEST_F(JobEndTest, AJobThatIsToEndDoesNotWaitForWhoHasGoneWithoutAReport) {
  away_ = Unavailable("connection refused");
  alive_[0] = true;  // the other one was never there
  std::chrono::steady_clock::time_point died;
  const std::jthread signals([&] {
    std::this_thread::sleep_for(milliseconds(1000));
    EXPECT_TRUE(job_end_.ExpectEnd("worker"));
    std::this_thread::sleep_for(milliseconds(500));
    died = std::chrono::steady_clock::now();
    alive_[0] = false;
  });
  EXPECT_OK(job_end_.Wait("worker", milliseconds(20000)));
  const auto took = std::chrono::steady_clock::now() - died;
  EXPECT_GT(took, milliseconds(0));
  EXPECT_LT(took, milliseconds(1500));
}

TEST_F(JobEndTest, WhoIsNotThereYetIsSaidWithTheReason) {
  away_ = Unavailable("connection refused");
  alive_[0] = true;
  const std::jthread end = EndBothAfter(milliseconds(6000));
  EXPECT_OK(job_end_.Wait("worker", milliseconds(1000)));
  MutexLock lock(mu_);
  EXPECT_THAT(lines_, ElementsAre("waiting for /job:worker/replica:0/task:1 at b:2 (connection "
                                  "refused)"));
}

TEST_F(JobEndTest, AWorkerThatDoesNotAnswerAtAllIsAskedOnce) {
  int asked = 0;
  std::vector<std::function<void(const Status&)>> unanswered;
  JobEnd job_end(cluster_, [&](const std::string&, int, std::function<void(const Status&)> done) {
    ++asked;
    unanswered.push_back(std::move(done));
  });
  EXPECT_THAT(job_end.Wait("worker", milliseconds(1000)),
              IsError(StatusCode::kDeadlineExceeded, "never heard of"));
  EXPECT_EQ(asked, 2);
}

TEST_F(JobEndTest, WithoutALimitNobodyIsAsked) {
  JobEnd job_end(cluster_, [](const std::string&, int, std::function<void(const Status&)>) {
    ADD_FAILURE() << "a task was asked";
  });
  const std::jthread end([&] {
    std::this_thread::sleep_for(milliseconds(100));
    job_end.Stop();
  });
  EXPECT_THAT(job_end.Wait("worker", milliseconds(0)),
              IsError(StatusCode::kCancelled, "told to shut down"));
}

}  // namespace
}  // namespace tenon
