// SPDX-License-Identifier: Apache-2.0
// Synchronous training over servers of this process and real gRPC.
#include "train/sync/sync_replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>

#include "data/files/file.h"
#include "ops/register.h"
#include "tests/testing/status_matchers.h"
#include "tests/train/sync_training.h"
#include "train/optimizers/gradient_descent.h"
#include "train/replica.h"

namespace tenon::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

TEST(SyncReplicasTest, DeterministicTrainingIsBitEqualForAnyNumberOfTasks) {
  const SyncOutcome expected = InTurn(12, 4, /*adam=*/false);
  ASSERT_OK(expected.status);
  for (const int workers : {1, 2, 4}) {
    for (const int num_ps : {1, 2, 3}) {
      SyncTraining training;
      training.sync.total_num_replicas = workers;
      training.sync.deterministic_shards = 4;
      std::map<std::pair<int64_t, int64_t>, float> losses;
      for (const SyncOutcome& out : Train(training, num_ps)) {
        ASSERT_OK(out.status);
        losses.insert(out.losses.begin(), out.losses.end());
        EXPECT_EQ(out.weights, expected.weights) << workers << " workers, " << num_ps << " ps";
      }
      EXPECT_EQ(losses, expected.losses) << workers << " workers, " << num_ps << " ps";
    }
  }
}

TEST(SyncReplicasTest, DeterministicTrainingThatLosesItsParameterServerEndsBitEqual) {
  const SyncOutcome expected = InTurn(12, 4, /*adam=*/false);
  const std::string folder = ::testing::TempDir() + TemporaryName("sync_replicas");
  TestCluster cluster(1, 2);
  cluster.StartAll();
  SyncTraining training;
  training.sync.total_num_replicas = 2;
  training.sync.deterministic_shards = 4;
  training.checkpoint_dir = folder;
  std::set<int64_t> lost;
  training.before_step = [&](int64_t step) {
    if (step % 5 != 3 || !lost.insert(step).second) return;
    cluster.Stop("ps", 0);
    cluster.StartOne("ps", 0);
  };
  for (const SyncOutcome& out : TrainOn(training, cluster)) {
    ASSERT_OK(out.status);
    EXPECT_EQ(out.weights, expected.weights);
    for (const auto& [key, loss] : out.losses) EXPECT_EQ(loss, expected.losses.at(key));
  }
  EXPECT_EQ(lost.size(), 2);
  std::filesystem::remove_all(folder);
}

TEST(SyncReplicasTest, WithoutShardsWorkersAgreeWithOneProcess) {
  const SyncOutcome expected = InTurn(12, 3, /*adam=*/false);
  ASSERT_OK(expected.status);
  SyncTraining training;
  training.sync.total_num_replicas = 3;
  for (const SyncOutcome& out : Train(training, 2)) {
    ASSERT_OK(out.status);
    EXPECT_EQ(out.steps, 12);
    for (size_t i = 0; i < expected.weights.size(); ++i) {
      EXPECT_NEAR(out.weights[i], expected.weights[i], 1e-5);
    }
    for (const auto& [key, loss] : out.losses) EXPECT_NEAR(loss, expected.losses.at(key), 1e-5);
  }
}

TEST(SyncReplicasTest, AdamGoesInStepToo) {
  const SyncOutcome expected = InTurn(8, 2, /*adam=*/true);
  SyncTraining training;
  training.adam = true;
  training.steps = 8;
  training.sync.total_num_replicas = 2;
  training.sync.deterministic_shards = 2;
  for (const SyncOutcome& out : Train(training, 1)) {
    ASSERT_OK(out.status);
    for (size_t i = 0; i < expected.weights.size(); ++i) {
      EXPECT_NEAR(out.weights[i], expected.weights[i], 1e-5);
    }
  }
}

TEST(SyncReplicasTest, AWorkerThatEndsEarlyDoesNotStopTheOthers) {
  SyncTraining training;
  training.sync.total_num_replicas = 3;
  training.leave_after[2] = 4;
  const auto outcomes = Train(training, 1);
  for (const SyncOutcome& out : outcomes) ASSERT_OK(out.status);
  EXPECT_EQ(outcomes[0].steps, 12);
  EXPECT_EQ(outcomes[1].steps, 12);
  EXPECT_EQ(outcomes[2].steps, 4);
}

TEST(SyncReplicasTest, ABackupWorkerMakesUpForASlowOne) {
  SyncTraining training;
  training.steps = 10;
  training.sync.total_num_replicas = 3;
  training.sync.replicas_to_aggregate = 2;
  training.delay[1] = milliseconds(1500);  // long enough for a step of a busy machine
  const auto begin = std::chrono::steady_clock::now();
  const auto outcomes = Train(training, 1);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(20));
  for (const SyncOutcome& out : outcomes) ASSERT_OK(out.status);
  EXPECT_EQ(outcomes[0].steps, 10);
  EXPECT_EQ(outcomes[2].steps, 10);
  EXPECT_LT(outcomes[1].steps, 10);
}

/// A worker whose gradients come, and of which the chief hears nothing.
class UnheardWorker {
 public:
  UnheardWorker(const SyncReplicasOptions& options, Server& server) {
    const GraphBuilding building(graph_);
    const DeviceScope device(ReplicaDeviceSetter(server));
    const SyncModel m;
    x_ = m.x;
    GradientDescent optimizer(0.05);
    SyncReplicas sync(optimizer, options);
    sync.Minimize(m.loss, {.global_step = GlobalStep()});
    for (const Node* n : graph_.nodes()) {
      if (n->name().ends_with("/push")) push_ = n->name();
    }
    session_ = *server.MakeSession(graph_);
  }

  /// Its gradients of those rows, as of that step.
  Status HandIn(int64_t step, const Tensor& rows) {
    const SyncMessage nobody{.kind = SyncMessage::kHere, .worker = 99};
    const Session::Feeds feeds = {{x_.name(), rows},
                                  {"sync_replicas/local_step", Tensor::Scalar(step)},
                                  {"sync_replicas/message", nobody.ToTensor()}};
    return session_->Run(StepFeeds(feeds), StepTensors{}, {push_}).status();
  }

 private:
  Graph graph_{AllOps()};
  Output x_;
  std::string push_;
  std::unique_ptr<Session> session_;
};

TEST(SyncReplicasTest, AGradientThatTheChiefHasNotHeardOfCountsInTheMeanOfRowsTooOrNowhere) {
  const SyncOutcome expected = InTurn(12, 1, /*adam=*/false);
  SyncTraining training;
  training.sync.total_num_replicas = 2;
  training.same_rows = true;
  TestCluster cluster(2, 2);
  cluster.StartAll();
  UnheardWorker unheard(training.sync, cluster.at("worker", 1));
  training.before_step = [&](int64_t step) {
    // In time, and too late.
    EXPECT_OK(unheard.HandIn(step, RowsOf(step, 0)));
    EXPECT_OK(unheard.HandIn(step - 1, RowsOf(step, 5)));
  };
  for (const SyncOutcome& out : TrainOn(training, cluster)) {
    ASSERT_OK(out.status);
    for (size_t i = 0; i < expected.weights.size(); ++i) {
      EXPECT_NEAR(out.weights[i], expected.weights[i], 1e-5);
    }
    for (const auto& [key, loss] : out.losses) EXPECT_NEAR(loss, expected.losses.at(key), 1e-5);
  }
}

TEST(SyncReplicasTest, ASlowWorkerIsWaitedForAndNamed) {
  std::mutex mu;
  std::string notices;
  SyncTraining training;
  training.steps = 2;
  training.sync.total_num_replicas = 2;
  training.sync.notice_interval = milliseconds(200);
  training.sync.notice = [&](const std::string& line) {
    const std::lock_guard lock(mu);
    notices += line + "\n";
  };
  training.delay[1] = milliseconds(1000);
  for (const SyncOutcome& out : Train(training, 1)) {
    ASSERT_OK(out.status);
    EXPECT_EQ(out.steps, 2);
  }
  EXPECT_THAT(notices, HasSubstr("step 0 waits for worker 1"));
}

TEST(SyncReplicasTest, OneProcessTrainsAlone) {
  SyncTraining training;
  training.sync.deterministic_shards = 4;
  const SyncOutcome out = RunWorker(training, 0, nullptr);
  ASSERT_OK(out.status);
  const SyncOutcome alone = InTurn(12, 4, false);
  ASSERT_OK(alone.status);
  EXPECT_EQ(out.losses, alone.losses);
}

TEST(SyncReplicasTest, WrongOptionsAreMistakes) {
  const auto mistake = [](const SyncReplicasOptions& options) {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    SyncModel m;
    GradientDescent optimizer(0.1);
    SyncReplicas sync(optimizer, options);
    sync.Minimize(m.loss, {.global_step = GlobalStep()});
    return std::string(building.status().message());
  };
  EXPECT_THAT(mistake({.total_num_replicas = 3, .deterministic_shards = 4}),
              HasSubstr("deterministic_shards = 4 must be a multiple of the 3 workers"));
  EXPECT_THAT(mistake({.replicas_to_aggregate = 3, .total_num_replicas = 2}),
              HasSubstr("must be at most the 2 workers"));
  EXPECT_THAT(mistake({.total_num_replicas = 2, .task = 2}),
              HasSubstr("there is no worker 2 of 2"));
}

}  // namespace
}  // namespace tenon::testing
