// SPDX-License-Identifier: Apache-2.0
#include "train/sync/sync_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using tenon::testing::IsError;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Next = SyncWorker::Next;

constexpr int64_t kIncarnation = 9;

class SyncWorkerTest : public ::testing::Test {
 protected:
  SyncWorkerTest() {
    options_.task = 1;
    options_.deterministic_shards = 4;
    worker_.Begin();
    worker_.BeginWait(now_);
  }
  Next Take(int64_t epoch, int64_t step, int64_t shard, bool has_next = false) {
    const SyncTurn turn{SyncTurn::kWork, epoch, step, shard};
    const auto next = worker_.Receive(turn, has_next, now_);
    EXPECT_OK(next.status());
    return *next;
  }
  /// Says for so long, four times a second, that nothing has come; what is to be done then.
  Next HearNothingFor(milliseconds time) {
    Next next = Next::kTakeTurn;
    for (milliseconds passed{0}; passed < time; passed += milliseconds(250)) {
      now_ += milliseconds(250);
      next = worker_.HearNothing(now_);
    }
    return next;
  }

  SyncReplicasOptions options_;
  SyncWorker worker_{options_, kIncarnation, 4};
  Clock::Time now_{std::chrono::hours(1)};
};

TEST_F(SyncWorkerTest, TurnsOfTheNewestStepAreWorkedOnEachOnce) {
  EXPECT_EQ(Take(1, 5, 0, true), Next::kTakeTurn);
  EXPECT_EQ(Take(1, 6, 2, true), Next::kTakeTurn);
  EXPECT_EQ(Take(1, 5, 1, true), Next::kTakeTurn);
  EXPECT_EQ(Take(1, 6, 2, true), Next::kTakeTurn);
  EXPECT_EQ(Take(1, 6, 3), Next::kWork);
  EXPECT_EQ(worker_.turn().step, 6);
  EXPECT_EQ(worker_.turn().shard, 2);
  EXPECT_EQ(worker_.EndRun(true), Next::kWork);
  EXPECT_EQ(worker_.turn().shard, 3);
  EXPECT_EQ(worker_.EndRun(true), Next::kTakeTurn);
}

TEST_F(SyncWorkerTest, ALaterChiefsTurnsGoBeforeAnEarlierOnes) {
  EXPECT_EQ(Take(1, 6, 0), Next::kWork);
  EXPECT_EQ(Take(2, 4, 0), Next::kWork);
  EXPECT_EQ(worker_.turn().step, 4);
  worker_.EndRun(true);
  EXPECT_EQ(Take(1, 7, 1), Next::kTakeTurn);
  EXPECT_EQ(*worker_.Receive({SyncTurn::kOver, 1}, false, now_), Next::kTakeTurn);
  EXPECT_EQ(*worker_.Receive({SyncTurn::kOver, 2}, false, now_), Next::kEnd);
}

TEST_F(SyncWorkerTest, WhatIsDoneIsSaidAgainWithEachSign) {
  Take(1, 6, 0, true);
  Take(1, 6, 3);
  worker_.EndRun(true);
  worker_.EndRun(false);
  const std::vector<SyncMessage> signs = worker_.Signs();
  ASSERT_EQ(signs.size(), 2);
  EXPECT_EQ(signs[0].kind, SyncMessage::kHere);
  EXPECT_EQ(signs[1].kind, SyncMessage::kDone);
  EXPECT_EQ(signs[1].shard, 0);
  for (const SyncMessage& sign : signs) {
    EXPECT_EQ(sign.worker, 1);
    EXPECT_EQ(sign.incarnation, kIncarnation);
    EXPECT_EQ(sign.epoch, 1);
    EXPECT_EQ(sign.step, 6);
  }
}

TEST_F(SyncWorkerTest, AnInputOfTheSessionBeforeIsNotCounted) {
  Take(1, 6, 0);
  worker_.TurnAsked();
  EXPECT_TRUE(worker_.BeginRun().has_value());
  worker_.Begin();
  worker_.BeginWait(now_);
  Take(2, 6, 1);
  EXPECT_FALSE(worker_.BeginRun().has_value());
  EXPECT_EQ(worker_.EndRun(false), Next::kWork);
  EXPECT_EQ(worker_.BeginRun()->shard, 1);
}

TEST_F(SyncWorkerTest, ASilentChiefsRecordSaysWhetherTrainingIsOver) {
  Take(1, 6, 0);
  worker_.EndRun(true);
  worker_.BeginWait(now_);
  EXPECT_EQ(HearNothingFor(milliseconds(750)), Next::kTakeTurn);
  EXPECT_EQ(HearNothingFor(milliseconds(250)), Next::kReadRecord);
  EXPECT_EQ(*worker_.Read(SyncRecord{.epoch = 1}), Next::kTakeTurn);
  EXPECT_EQ(HearNothingFor(milliseconds(750)), Next::kTakeTurn);
  EXPECT_EQ(HearNothingFor(milliseconds(250)), Next::kReadRecord);
  EXPECT_EQ(*worker_.Read(SyncRecord{.epoch = 1, .over = true, .step = 7}), Next::kEnd);
  EXPECT_THAT(worker_.TakeNotices(), ElementsAre(HasSubstr("has ended training at step 7")));
}

TEST_F(SyncWorkerTest, AChiefIsGivenUpForItsOwnSilenceAndNotForThatOfAStoppedProcess) {
  now_ += seconds(600);
  EXPECT_EQ(worker_.HearNothing(now_), Next::kReadRecord);
  EXPECT_EQ(*worker_.Read(SyncRecord()), Next::kTakeTurn);
  HearNothingFor(seconds(58));
  EXPECT_EQ(*worker_.Read(SyncRecord()), Next::kTakeTurn);
  EXPECT_EQ(HearNothingFor(seconds(1)), Next::kReadRecord);
  EXPECT_THAT(worker_.Read(SyncRecord()).status(),
              IsError(StatusCode::kDeadlineExceeded,
                      "worker 1 waited 60 s for a turn of the chief, worker 0"));
}

TEST_F(SyncWorkerTest, AShardThatDoesNotExistIsOfAChiefWithOtherOptions) {
  EXPECT_THAT(worker_.Receive({SyncTurn::kWork, 1, 6, 4}, false, now_).status(),
              IsError(StatusCode::kInvalidArgument, "both need the same options"));
}

}  // namespace
}  // namespace tenon
