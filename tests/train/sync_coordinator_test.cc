// SPDX-License-Identifier: Apache-2.0
#include "train/sync/sync_coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr int64_t kEpoch = 7;

class SyncCoordinatorTest : public ::testing::Test {
 protected:
  void Begin(SyncCoordinatorOptions options) {
    coordinator_ = std::make_unique<SyncCoordinator>(options, kEpoch, 10, now_);
  }
  void Here(int64_t worker, int64_t incarnation = 1) {
    coordinator_->Receive({SyncMessage::kHere, worker, incarnation, 0, -1, 0}, now_);
  }
  void Done(int64_t worker, int64_t shard = 0, std::optional<int64_t> step = {}) {
    coordinator_->Receive(
        {SyncMessage::kDone, worker, 1, kEpoch, step.value_or(coordinator_->step()), shard}, now_);
  }
  void Left(int64_t worker) {
    coordinator_->Receive({SyncMessage::kLeft, worker, 1, kEpoch, coordinator_->step(), 0}, now_);
  }
  bool Apply() {
    if (!coordinator_->StepIsComplete()) return false;
    coordinator_->StepApplied(now_);
    return true;
  }
  /// (worker, shard) of the work given since the last call.
  std::vector<std::pair<int64_t, int64_t>> Work() {
    std::vector<std::pair<int64_t, int64_t>> work;
    for (const auto& [worker, turn] : coordinator_->TakeTurns()) {
      if (turn.kind == SyncTurn::kWork && turn.step == coordinator_->step())
        work.emplace_back(worker, turn.shard);
    }
    return work;
  }
  std::string Notices() { return Join(coordinator_->TakeNotices(), "; "); }

  SyncCoordinator::Time now_{std::chrono::hours(1)};
  std::unique_ptr<SyncCoordinator> coordinator_;
};

TEST_F(SyncCoordinatorTest, TheFirstStepWaitsForAllWorkers) {
  Begin({.replicas_to_aggregate = 2, .total_replicas = 2});
  Here(0);
  EXPECT_THAT(Work(), IsEmpty());
  Here(1);
  EXPECT_THAT(Work(), ElementsAre(Pair(0, 0), Pair(1, 0)));
}

TEST_F(SyncCoordinatorTest, AWorkerThatNeverComesIsNamedAndTrainingBegins) {
  Begin({.replicas_to_aggregate = 2,
         .total_replicas = 2,
         .lost_after = seconds(100),
         .join_deadline = seconds(20)});
  Here(0);
  now_ += seconds(6);
  coordinator_->Tick(now_);
  EXPECT_THAT(Notices(), HasSubstr("waiting for 2 workers, 6 s now; there are worker 0"));
  now_ += seconds(14);
  coordinator_->Tick(now_);
  EXPECT_THAT(Notices(), HasSubstr("only 1 of 2 workers came within 20 s"));
  EXPECT_THAT(Work(), ElementsAre(Pair(0, 0)));
  Done(0);
  EXPECT_TRUE(Apply());
}

TEST_F(SyncCoordinatorTest, AStepNeedsEveryWorkerOnce) {
  Begin({.replicas_to_aggregate = 2, .total_replicas = 2});
  Here(0);
  Here(1);
  Done(0);
  Done(0);
  EXPECT_FALSE(Apply());
  Done(1);
  EXPECT_TRUE(Apply());
  EXPECT_EQ(coordinator_->step(), 11);
}

TEST_F(SyncCoordinatorTest, ABackupWorkerMayBeLate) {
  Begin({.replicas_to_aggregate = 2, .total_replicas = 3});
  for (int w = 0; w < 3; ++w) Here(w);
  Done(0);
  Done(2);
  EXPECT_TRUE(Apply());
  Work();
  Done(1, 0, 10);  // of the step before
  Done(0);
  EXPECT_FALSE(Apply());
  Done(1);
  EXPECT_TRUE(Apply());
}

TEST_F(SyncCoordinatorTest, AWorkerThatEndsLeavesTheOthersInStep) {
  Begin({.replicas_to_aggregate = 2, .total_replicas = 2});
  Here(0);
  Here(1);
  Done(0);
  Left(1);
  EXPECT_TRUE(Apply());
  EXPECT_THAT(Notices(), HasSubstr("worker 1 has ended; worker 0 go"));
}

TEST_F(SyncCoordinatorTest, ASilentWorkerIsNamedAndThenLeftOut) {
  Begin({.replicas_to_aggregate = 2, .total_replicas = 2, .lost_after = seconds(10)});
  Here(0);
  Here(1);
  Done(0);
  now_ += seconds(5);
  Here(0);
  coordinator_->Tick(now_);
  EXPECT_THAT(Notices(), HasSubstr("step 10 waits for worker 1, 5 s now"));
  now_ += seconds(5);
  Here(0);
  coordinator_->Tick(now_);
  EXPECT_THAT(Notices(), HasSubstr("worker 1 has given no sign of life for 10 s"));
  EXPECT_TRUE(Apply());
}

TEST_F(SyncCoordinatorTest, AWorkerThatComesAgainGetsATurn) {
  Begin({.replicas_to_aggregate = 2, .total_replicas = 2});
  Here(0);
  Here(1);
  Work();
  Here(1, /*incarnation=*/2);
  EXPECT_THAT(Work(), ElementsAre(Pair(1, 0)));
  EXPECT_THAT(coordinator_->active(), ElementsAre(0, 1));
}

TEST_F(SyncCoordinatorTest, ATurnThatWasLostIsGivenAgain) {
  Begin({.replicas_to_aggregate = 2, .total_replicas = 2});
  Here(0);
  Here(1);
  Work();
  now_ += seconds(1);
  Here(1);
  EXPECT_THAT(Work(), IsEmpty());
  now_ += seconds(1);
  Here(1);
  EXPECT_THAT(Work(), ElementsAre(Pair(1, 0)));
}

TEST_F(SyncCoordinatorTest, ShardsAreDividedAndThoseOfTheDeadGoToTheOthers) {
  Begin({.replicas_to_aggregate = 2, .total_replicas = 2, .shards = 4, .lost_after = seconds(10)});
  Here(0);
  Here(1);
  EXPECT_THAT(Work(), ElementsAre(Pair(0, 0), Pair(1, 1), Pair(0, 2), Pair(1, 3)));
  Done(0, 0);
  Done(0, 2);
  Done(1, 1);
  EXPECT_FALSE(Apply());
  now_ += seconds(10);
  Here(0);
  coordinator_->Tick(now_);
  EXPECT_THAT(Work(), ElementsAre(Pair(0, 3)));
  Done(0, 3);
  EXPECT_TRUE(Apply());
  EXPECT_THAT(Work(), ElementsAre(Pair(0, 0), Pair(0, 1), Pair(0, 2), Pair(0, 3)));
}

TEST_F(SyncCoordinatorTest, NobodyLeftMeansThatTheNextOneGoesOn) {
  Begin({.replicas_to_aggregate = 1, .total_replicas = 1, .shards = 2, .lost_after = seconds(10)});
  Here(0);
  Work();
  now_ += seconds(11);
  coordinator_->Tick(now_);
  EXPECT_THAT(Notices(), HasSubstr("nobody is left"));
  EXPECT_FALSE(Apply());
  Here(0, 2);
  EXPECT_THAT(Work(), ElementsAre(Pair(0, 0), Pair(0, 1)));
}

TEST_F(SyncCoordinatorTest, NobodyLeftAfterAShardWasDoneMeansThatTheNextOneDoesTheRest) {
  Begin({.replicas_to_aggregate = 1, .total_replicas = 1, .shards = 2, .lost_after = seconds(10)});
  Here(0);
  Work();
  Done(0, 0);
  now_ += seconds(11);
  coordinator_->Tick(now_);
  EXPECT_THAT(Notices(), HasSubstr("nobody is left"));
  Here(0);
  EXPECT_THAT(Work(), ElementsAre(Pair(0, 1)));
  Done(0, 1);
  EXPECT_TRUE(Apply());
}

TEST_F(SyncCoordinatorTest, OneOfSeveralShardsThatWasLostIsGivenAgain) {
  Begin({.replicas_to_aggregate = 1, .total_replicas = 1, .shards = 2});
  Here(0);
  Work();
  Done(0, 1);
  now_ += seconds(2);
  // It has had the other turn of the step.
  coordinator_->Receive({SyncMessage::kHere, 0, 1, kEpoch, 10, 0}, now_);
  EXPECT_THAT(Work(), ElementsAre(Pair(0, 0)));
}

TEST_F(SyncCoordinatorTest, AWorkerThatComesAgainAfterItsGradientsWaitsForTheNextStep) {
  Begin({.replicas_to_aggregate = 2, .total_replicas = 2});
  Here(0);
  Here(1);
  Work();
  Done(1);
  Here(1, /*incarnation=*/2);
  EXPECT_THAT(Work(), IsEmpty());
  Done(0);
  EXPECT_TRUE(Apply());
  EXPECT_THAT(Work(), ElementsAre(Pair(0, 0), Pair(1, 0)));
}

TEST_F(SyncCoordinatorTest, AWorkerWithANumberThatThereIsNotIsNotWaitedFor) {
  Begin({.replicas_to_aggregate = 2, .total_replicas = 2});
  Here(0);
  Here(2);
  EXPECT_THAT(Work(), IsEmpty());
  Here(1);
  EXPECT_THAT(Work(), ElementsAre(Pair(0, 0), Pair(1, 0)));
}

TEST_F(SyncCoordinatorTest, TheEndIsToldToAll) {
  Begin({.replicas_to_aggregate = 2, .total_replicas = 2});
  Here(0);
  Here(1);
  coordinator_->TakeTurns();
  coordinator_->End();
  const auto turns = coordinator_->TakeTurns();
  ASSERT_EQ(turns.size(), 2);
  EXPECT_EQ(turns[1].second.kind, SyncTurn::kOver);
}

}  // namespace
}  // namespace tenon
