// SPDX-License-Identifier: Apache-2.0
// Synchronous training over servers of this process and real gRPC.
#include "train/sync/sync_replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "data/file.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "ops/register.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"
#include "train/optimizers/adam.h"
#include "train/optimizers/gradient_descent.h"
#include "train/replica.h"
#include "train/sessions/hooks.h"
#include "train/sessions/monitored_training_session.h"
#include "train/sync/sync_replicas_hook.h"

namespace tenon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr int kRows = 6, kInputs = 3;

/// Rows that depend on nothing but these numbers.
Tensor RowsOf(int64_t step, int64_t shard) {
  Tensor rows(DType::kFloat, Shape({kRows, kInputs}));
  for (int64_t i = 0; i < rows.num_elements(); ++i) {
    rows.data<float>()[i] =
        std::sin(0.7f * static_cast<float>(i) + 1.3f * static_cast<float>(step) +
                 2.9f * static_cast<float>(shard));
  }
  return rows;
}

/// A small network, with a table of which few rows are used.
struct Model {
  Variable w1{"w1", Const({{0.1, -0.2, 0.3, 0.5}, {0.4, 0.5, -0.6, -0.1}, {-0.7, 0.8, 0.9, 0.2}},
                          {.dtype = DType::kFloat})};
  Variable w2{"w2", Const({{0.3}, {-0.2}, {0.7}, {0.1}}, {.dtype = DType::kFloat})};
  Variable table{"table", Zeros({50, 1})};
  Output x = Placeholder(DType::kFloat, {kRows, kInputs}, {.name = "x"});
  Output rows = Cast(Abs(x[{{}, 0}]) * 40, DType::kInt32);
  Output loss = Mean(Square(MatMul(Tanh(MatMul(x, w1)), w2) + GatherV2(table, rows, 0) -
                            Sum(x, {1}, {.keep_dims = true})));
};

struct Outcome {
  Status status;
  std::map<std::pair<int64_t, int64_t>, float> losses;  // by step and shard
  std::vector<float> weights;
  int64_t steps = 0;  // that this worker took part in
};

struct Training {
  SyncReplicasOptions sync;
  int64_t steps = 12;
  /// Worker i ends after so many steps of its own; 0: does not.
  std::map<int, int64_t> leave_after = {};
  std::map<int, milliseconds> delay = {};
  std::string checkpoint_dir = {};
  /// Called by the chief before each step.
  std::function<void(int64_t step)> before_step = {};
};

template <typename OptimizerType>
Outcome RunWorker(const Training& training, int task, Server* server) {
  Outcome out;
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const auto replica = server == nullptr ? DeviceFunction() : ReplicaDeviceSetter(*server);
  const DeviceScope device(replica);
  Model m;
  const Variable step = GlobalStep();
  OptimizerType optimizer(0.05);
  SyncReplicasOptions options = training.sync;
  options.task = task;
  SyncReplicas sync(optimizer, options);
  Node* train = sync.Minimize(m.loss, {.global_step = step});
  const auto hook = sync.MakeHook();
  out.status = [&]() -> Status {
    TENON_ASSIGN_OR_RETURN(
        auto session, MonitoredTrainingSession::Start({.server = server,
                                                       .is_chief = task == 0,
                                                       .checkpoint_dir = training.checkpoint_dir,
                                                       .save_checkpoint_steps = 1,
                                                       .save_summaries_steps = 0,
                                                       .hooks = {hook, StopAtStep(training.steps)},
                                                       .first_pause = milliseconds(400),
                                                       .stop_on_signals = false}));
    const auto leave = training.leave_after.find(task);
    while (!session->ShouldStop()) {
      if (leave != training.leave_after.end() && out.steps == leave->second) break;
      if (const auto slow = training.delay.find(task); slow != training.delay.end()) {
        std::this_thread::sleep_for(slow->second);
      }
      const SyncTurn turn = hook->turn();
      if (task == 0 && training.before_step) training.before_step(turn.step);
      const int64_t shard = options.deterministic_shards > 0 ? turn.shard : task;
      TENON_ASSIGN_OR_RETURN(
          const float loss,
          session->template Run<float>({{m.x, RowsOf(turn.step, shard)}}, m.loss, {train}));
      out.losses[{turn.step, shard}] = loss;
      ++out.steps;
    }
    TENON_ASSIGN_OR_RETURN(out.weights,
                           session->template RunWithoutHooks<std::vector<float>>({}, m.w1));
    return session->Close();
  }();
  return out;
}

template <typename OptimizerType>
std::vector<Outcome> TrainOn(const Training& training, testing::TestCluster& cluster) {
  const int workers = training.sync.total_num_replicas;
  std::vector<Outcome> outcomes(workers);
  std::vector<std::thread> threads;
  for (int task = 0; task < workers; ++task) {
    threads.emplace_back([&, task] {
      outcomes[task] = RunWorker<OptimizerType>(training, task, &cluster.at("worker", task));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

template <typename OptimizerType>
std::vector<Outcome> Train(const Training& training, int num_ps) {
  testing::TestCluster cluster(num_ps, training.sync.total_num_replicas);
  cluster.StartAll();
  return TrainOn<OptimizerType>(training, cluster);
}

/// What one process gets that computes the shards in turn and adds up their gradients itself.
Outcome InTurn(int64_t steps, int shards, bool adam) {
  Outcome out;
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  Model m;
  Adam with_adam(0.05);
  GradientDescent descent(0.05);
  Optimizer& optimizer = adam ? static_cast<Optimizer&>(with_adam) : descent;
  const auto gradients = optimizer.ComputeGradients(m.loss);
  std::vector<GradientAndVariable> given;
  std::vector<Output> fetches = {m.loss}, fed;
  for (const GradientAndVariable& g : gradients) {
    const Output dense = g.gradient.ToDense();
    fetches.push_back(dense);
    fed.push_back(Placeholder(DType::kFloat, dense.shape()));
    given.push_back({fed.back(), g.variable});
  }
  Node* train = optimizer.ApplyGradients(given);
  Node* init = GlobalVariablesInitializer();
  out.status = [&]() -> Status {
    TENON_ASSIGN_OR_RETURN(auto session, MakeLocalSession(graph));
    TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
    for (int64_t step = 0; step < steps; ++step) {
      std::vector<Tensor> sums;
      for (int64_t shard = 0; shard < shards; ++shard) {
        TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                               session->Run({{m.x, RowsOf(step, shard)}}, fetches));
        out.losses[{step, shard}] = values[0].scalar<float>();
        for (size_t i = 1; i < values.size(); ++i) {
          if (shard == 0) {
            sums.push_back(*values[i].Copy());
            continue;
          }
          for (int64_t k = 0; k < values[i].num_elements(); ++k) {
            sums[i - 1].data<float>()[k] += values[i].data<float>()[k];
          }
        }
      }
      Session::Feeds feeds;
      for (size_t i = 0; i < sums.size(); ++i) {
        for (float& x : sums[i].flat<float>()) x /= static_cast<float>(shards);
        feeds.emplace_back(fed[i].name(), sums[i]);
      }
      TENON_RETURN_IF_ERROR(session->Run(StepFeeds(feeds), StepTensors{}, {train}).status());
    }
    TENON_ASSIGN_OR_RETURN(out.weights, session->Run<std::vector<float>>({}, m.w1));
    return OkStatus();
  }();
  return out;
}

TEST(SyncReplicasTest, DeterministicTrainingIsBitEqualForAnyNumberOfTasks) {
  const Outcome expected = InTurn(12, 4, /*adam=*/false);
  ASSERT_OK(expected.status);
  for (const int workers : {1, 2, 4}) {
    for (const int num_ps : {1, 2, 3}) {
      Training training;
      training.sync.total_num_replicas = workers;
      training.sync.deterministic_shards = 4;
      std::map<std::pair<int64_t, int64_t>, float> losses;
      for (const Outcome& out : Train<GradientDescent>(training, num_ps)) {
        ASSERT_OK(out.status);
        losses.insert(out.losses.begin(), out.losses.end());
        EXPECT_EQ(out.weights, expected.weights) << workers << " workers, " << num_ps << " ps";
      }
      EXPECT_EQ(losses, expected.losses) << workers << " workers, " << num_ps << " ps";
    }
  }
}

TEST(SyncReplicasTest, DeterministicTrainingThatLosesItsParameterServerEndsBitEqual) {
  const Outcome expected = InTurn(12, 4, /*adam=*/false);
  const std::string folder = ::testing::TempDir() + TemporaryName("sync_replicas");
  testing::TestCluster cluster(1, 2);
  cluster.StartAll();
  Training training;
  training.sync.total_num_replicas = 2;
  training.sync.deterministic_shards = 4;
  training.checkpoint_dir = folder;
  std::set<int64_t> lost;
  training.before_step = [&](int64_t step) {
    if (step % 5 != 3 || !lost.insert(step).second) return;
    cluster.Stop("ps", 0);
    cluster.StartOne("ps", 0);
  };
  for (const Outcome& out : TrainOn<GradientDescent>(training, cluster)) {
    ASSERT_OK(out.status);
    EXPECT_EQ(out.weights, expected.weights);
    for (const auto& [key, loss] : out.losses) EXPECT_EQ(loss, expected.losses.at(key));
  }
  EXPECT_EQ(lost.size(), 2);
  std::filesystem::remove_all(folder);
}

TEST(SyncReplicasTest, WithoutShardsWorkersAgreeWithOneProcess) {
  const Outcome expected = InTurn(12, 3, /*adam=*/false);
  ASSERT_OK(expected.status);
  Training training;
  training.sync.total_num_replicas = 3;
  for (const Outcome& out : Train<GradientDescent>(training, 2)) {
    ASSERT_OK(out.status);
    EXPECT_EQ(out.steps, 12);
    for (size_t i = 0; i < expected.weights.size(); ++i) {
      EXPECT_NEAR(out.weights[i], expected.weights[i], 1e-5);
    }
    for (const auto& [key, loss] : out.losses) EXPECT_NEAR(loss, expected.losses.at(key), 1e-5);
  }
}

TEST(SyncReplicasTest, AdamGoesInStepToo) {
  const Outcome expected = InTurn(8, 2, /*adam=*/true);
  Training training;
  training.steps = 8;
  training.sync.total_num_replicas = 2;
  training.sync.deterministic_shards = 2;
  for (const Outcome& out : Train<Adam>(training, 1)) {
    ASSERT_OK(out.status);
    for (size_t i = 0; i < expected.weights.size(); ++i) {
      EXPECT_NEAR(out.weights[i], expected.weights[i], 1e-5);
    }
  }
}

TEST(SyncReplicasTest, AWorkerThatEndsEarlyDoesNotStopTheOthers) {
  Training training;
  training.sync.total_num_replicas = 3;
  training.leave_after[2] = 4;
  const auto outcomes = Train<GradientDescent>(training, 1);
  for (const Outcome& out : outcomes) ASSERT_OK(out.status);
  EXPECT_EQ(outcomes[0].steps, 12);
  EXPECT_EQ(outcomes[1].steps, 12);
  EXPECT_EQ(outcomes[2].steps, 4);
}

TEST(SyncReplicasTest, ABackupWorkerMakesUpForASlowOne) {
  Training training;
  training.steps = 10;
  training.sync.total_num_replicas = 3;
  training.sync.replicas_to_aggregate = 2;
  training.delay[1] = milliseconds(300);
  const auto begin = std::chrono::steady_clock::now();
  const auto outcomes = Train<GradientDescent>(training, 1);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(20));
  for (const Outcome& out : outcomes) ASSERT_OK(out.status);
  EXPECT_EQ(outcomes[0].steps, 10);
  EXPECT_EQ(outcomes[2].steps, 10);
  EXPECT_LT(outcomes[1].steps, 10);
}

TEST(SyncReplicasTest, ASlowWorkerIsWaitedForAndNamed) {
  std::mutex mu;
  std::string notices;
  Training training;
  training.steps = 2;
  training.sync.total_num_replicas = 2;
  training.sync.notice_interval = milliseconds(200);
  training.sync.notice = [&](const std::string& line) {
    const std::lock_guard lock(mu);
    notices += line + "\n";
  };
  training.delay[1] = milliseconds(1000);
  for (const Outcome& out : Train<GradientDescent>(training, 1)) {
    ASSERT_OK(out.status);
    EXPECT_EQ(out.steps, 2);
  }
  EXPECT_THAT(notices, HasSubstr("step 0 waits for worker 1"));
}

TEST(SyncReplicasTest, OneProcessTrainsAlone) {
  Training training;
  training.sync.deterministic_shards = 4;
  const Outcome out = RunWorker<GradientDescent>(training, 0, nullptr);
  ASSERT_OK(out.status);
  EXPECT_EQ(out.losses, InTurn(12, 4, false).losses);
}

TEST(SyncReplicasTest, WrongOptionsAreMistakes) {
  const auto mistake = [](const SyncReplicasOptions& options) {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    Model m;
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
}  // namespace tenon
