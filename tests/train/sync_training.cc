// SPDX-License-Identifier: Apache-2.0
#include "tests/train/sync_training.h"

#include <cmath>
#include <thread>

#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/status_matchers.h"
#include "train/optimizers/adam.h"
#include "train/optimizers/gradient_descent.h"
#include "train/replica.h"
#include "train/sessions/hooks.h"
#include "train/sessions/monitored_training_session.h"

namespace tenon::testing {

Tensor RowsOf(int64_t step, int64_t shard) {
  Tensor rows(DType::kFloat, Shape({kSyncRows, kSyncInputs}));
  for (int64_t i = 0; i < rows.num_elements(); ++i) {
    rows.data<float>()[i] =
        std::sin(0.7f * static_cast<float>(i) + 1.3f * static_cast<float>(step) +
                 2.9f * static_cast<float>(shard));
  }
  return rows;
}

SyncOutcome RunWorker(const SyncTraining& training, int task, Server* server) {
  SyncOutcome out;
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const auto replica = server == nullptr ? DeviceFunction() : ReplicaDeviceSetter(*server);
  const DeviceScope device(replica);
  SyncModel m;
  const Variable step = GlobalStep();
  Adam adam(0.05);
  GradientDescent descent(0.05);
  Optimizer& optimizer = training.adam ? static_cast<Optimizer&>(adam) : descent;
  SyncReplicasOptions options = training.sync;
  options.task = task;
  SyncReplicas sync(optimizer, options);
  Node* train = sync.Minimize(m.loss, {.global_step = step});
  const auto hook = sync.MakeHook();
  out.status = [&]() -> Status {
    TENON_ASSIGN_OR_RETURN(auto session, MonitoredTrainingSession::Start(
                                             {.server = server,
                                              .is_chief = task == 0,
                                              .checkpoint_dir = training.checkpoint_dir,
                                              .save_checkpoint_steps = 1,
                                              .save_summaries_steps = 0,
                                              .hooks = {hook, StopAtStep(training.steps)},
                                              .first_pause = std::chrono::milliseconds(400),
                                              .stop_on_signals = false}));
    const auto leave = training.leave_after.find(task);
    while (!session->ShouldStop()) {
      if (leave != training.leave_after.end() && out.steps == leave->second) break;
      if (const auto slow = training.delay.find(task); slow != training.delay.end()) {
        std::this_thread::sleep_for(slow->second);
      }
      if (task == 0 && training.chief_fails_after > 0 && out.steps == training.chief_fails_after) {
        return Internal("the chief fails");
      }
      const SyncTurn turn = hook->turn();
      out.epochs.insert(turn.epoch);
      if (task == 0 && training.before_step) training.before_step(turn.step);
      const int64_t shard = options.deterministic_shards > 0 ? turn.shard
                            : training.same_rows             ? 0
                                                             : task;
      TENON_ASSIGN_OR_RETURN(
          const float loss,
          session->Run<float>({{m.x, RowsOf(turn.step, shard)}}, m.loss, {train}));
      out.losses[{turn.step, shard}] = loss;
      ++out.steps;
    }
    TENON_ASSIGN_OR_RETURN(out.weights, session->RunWithoutHooks<std::vector<float>>({}, m.w1));
    return session->Close();
  }();
  return out;
}

std::vector<SyncOutcome> TrainOn(const SyncTraining& training, TestCluster& cluster) {
  const int workers = training.sync.total_num_replicas;
  std::vector<SyncOutcome> outcomes(workers);
  std::vector<std::thread> threads;
  for (int task = 0; task < workers; ++task) {
    threads.emplace_back(
        [&, task] { outcomes[task] = RunWorker(training, task, &cluster.at("worker", task)); });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

std::vector<SyncOutcome> Train(const SyncTraining& training, int num_ps) {
  TestCluster cluster(num_ps, training.sync.total_num_replicas);
  cluster.StartAll();
  return TrainOn(training, cluster);
}

SyncOutcome InTurn(int64_t steps, int shards, bool adam) {
  SyncOutcome out;
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  SyncModel m;
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
    // Applied as they come: the step of some rows rounds otherwise than that of a whole table.
    Gradient sum = fed.back();
    if (g.gradient.is_sparse()) {
      const Output value = g.variable.value;
      const auto rows = static_cast<int32_t>(value.shape().dim(0));
      sum = IndexedSlices{fed.back(), Range(0, rows, 1), Const({rows, 1})};
    }
    given.push_back({sum, g.variable});
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

}  // namespace tenon::testing
