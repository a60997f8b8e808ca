// SPDX-License-Identifier: Apache-2.0
// How synchronous training ends for workers that come late, or whose chief goes or comes again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "tests/testing/status_matchers.h"
#include "tests/train/sync_training.h"

namespace tenon::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

/// One parameter server and two workers, of which one comes later, or not at all.
class SyncReplicasEndTest : public ::testing::Test {
 protected:
  SyncReplicasEndTest() {
    cluster_.StartAll();
    training_.steps = 3;
    training_.sync.total_num_replicas = 2;
    training_.sync.join_deadline = milliseconds(100);
    training_.sync.notice = [this](const std::string& line) {
      const std::lock_guard lock(mu_);
      notices_ += line + "\n";
    };
  }
  SyncOutcome RunTask(int task) { return RunWorker(training_, task, &cluster_.at("worker", task)); }
  std::string notices() {
    const std::lock_guard lock(mu_);
    return notices_;
  }

  TestCluster cluster_{1, 2};
  SyncTraining training_;

 private:
  std::mutex mu_;
  std::string notices_;
};

TEST_F(SyncReplicasEndTest, AWorkerThatComesAfterTheEndEndsSoonAndWellAndSaysWhy) {
  ASSERT_OK(RunTask(0).status);
  training_.sync.lost_after = milliseconds(1500);
  training_.steps = 100;  // so that only the chief's record tells it
  const auto begin = std::chrono::steady_clock::now();
  const SyncOutcome late = RunTask(1);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));
  ASSERT_OK(late.status);
  EXPECT_EQ(late.steps, 0);
  EXPECT_THAT(notices(), HasSubstr("the chief, worker 0, has ended training at step 3, before "
                                   "worker 1 came"));
}

TEST_F(SyncReplicasEndTest, AWorkerThatComesBeforeTheNextChiefOfTheSameServersWaitsForIt) {
  const SyncOutcome first = RunTask(0);
  ASSERT_OK(first.status);
  training_.steps = 6;
  training_.sync.join_deadline = seconds(60);
  SyncOutcome early;
  std::thread worker([&] { early = RunTask(1); });
  std::this_thread::sleep_for(milliseconds(1500));
  const SyncOutcome second = RunTask(0);
  worker.join();
  ASSERT_OK(second.status);
  ASSERT_OK(early.status);
  EXPECT_EQ(second.steps, 3);
  EXPECT_EQ(early.steps, 3);
  // Whatever the clocks say, later chiefs are known by a higher epoch.
  EXPECT_EQ(first.epochs, std::set<int64_t>{1});
  EXPECT_EQ(second.epochs, std::set<int64_t>{2});
  EXPECT_EQ(early.epochs, second.epochs);
}

TEST_F(SyncReplicasEndTest, AChiefThatComesAgainIsBelieved) {
  training_.steps = 8;
  training_.sync.join_deadline = seconds(60);
  training_.chief_fails_after = 3;
  SyncOutcome survivor;
  std::thread worker([&] { survivor = RunTask(1); });
  EXPECT_EQ(RunTask(0).status.code(), StatusCode::kInternal);
  training_.chief_fails_after = 0;
  const SyncOutcome second = RunTask(0);
  worker.join();
  ASSERT_OK(second.status);
  ASSERT_OK(survivor.status);
  EXPECT_EQ(second.epochs, std::set<int64_t>{2});
  EXPECT_EQ(survivor.epochs, (std::set<int64_t>{1, 2}));
}

TEST_F(SyncReplicasEndTest, AChiefThatDoesNotComeAgainIsWaitedForOnce) {
  training_.sync.join_deadline = seconds(60);
  training_.sync.chief_deadline = milliseconds(1500);
  training_.chief_fails_after = 1;
  SyncOutcome survivor;
  auto ended = std::chrono::steady_clock::now();
  std::thread worker([&] {
    survivor = RunTask(1);
    ended = std::chrono::steady_clock::now();
  });
  EXPECT_EQ(RunTask(0).status.code(), StatusCode::kInternal);
  const auto begin = std::chrono::steady_clock::now();
  worker.join();
  EXPECT_LT(ended - begin, seconds(10));
  EXPECT_EQ(survivor.status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(
      std::string(survivor.status.message()),
      HasSubstr("s for a turn of the chief, worker 0, which gave no sign of life and has not "
                "ended training; the last one was of step 1"));
}

}  // namespace
}  // namespace tenon::testing
