// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/optimizers/optimizer.h"
#include "train/sync/sync_coordinator.h"
#include "train/sync/sync_nodes.h"

namespace tenon {

class SyncReplicasHook;

/// Options of SyncReplicas, by name.
struct SyncReplicasOptions {
  /// A step needs the gradients of so many workers; 0: of all. Those above are backup workers.
  int replicas_to_aggregate = 0;
  /// How many workers there are.
  int total_num_replicas = 1;
  /// The number of this worker. Worker 0 is the chief.
  int task = 0;
  /// Above 0: deterministic. The batch of a step is cut into so many shards, whose gradients are
  /// computed alone and added in the order of the shards, whoever computes them: any number of
  /// workers and parameter servers makes the same values, bit for bit. The program asks
  /// SyncReplicasHook::turn which shard is next.
  int deterministic_shards = 0;
  /// A worker that says nothing for so long has died, and the others go on without it. So long,
  /// too, a worker that comes when training has ended on these servers waits for a chief that goes
  /// on.
  std::chrono::milliseconds lost_after{10000};
  /// The first step waits so long for workers that have not come.
  std::chrono::milliseconds join_deadline{60000};
  /// A chief that says nothing for so long, and has not ended training, has died: the step fails
  /// with DeadlineExceeded, after which there is no recovery.
  std::chrono::milliseconds chief_deadline{60000};
  /// How often is said who a step waits for; four times in a chief_deadline at least.
  std::chrono::milliseconds notice_interval{5000};
  /// Gets lines for people, from any thread: who joins and leaves, and who is missing; may be null.
  std::function<void(const std::string& line)> notice = {};
  std::string name = "sync_replicas";
};

/// Trains in step with other workers (tf.train.SyncReplicasOptimizer; Chen et al. 2016, "Revisiting
/// Distributed Synchronous SGD"): each step applies, once, the mean of the gradients that the
/// workers have computed of the same values of the variables. Gradients of older steps are dropped.
///
///   Adam adam(0.001);
///   SyncReplicas sync(adam, {.total_num_replicas = workers, .task = task});
///   Node* train = sync.Minimize(loss, {.global_step = GlobalStep()});
///   ... MonitoredTrainingSession::Start({.server = &server, .is_chief = task == 0,
///                                        .hooks = {sync.MakeHook(), StopAtStep(1000)}}) ...
///
/// The loop is that of asynchronous training: with the hook, a Run of `train` hands in this
/// worker's gradients and returns when the step was applied. A worker that ends, or dies, leaves
/// the others in step; one that comes late, or again, joins them. Workers build the same graph,
/// with variables, accumulators and queues on parameter servers.
///
/// Unlike TensorFlow's: each worker has a token queue of its own, so that none uses up those of
/// others; the mean of sparse gradients is over the workers, not over those that have the row.
class SyncReplicas final : public Optimizer {
 public:
  /// `optimizer` applies the means; it must outlive this.
  explicit SyncReplicas(Optimizer& optimizer, const SyncReplicasOptions& options);

  /// The same as Optimizer's, but may be called only once. A global_step is needed.
  Node* ApplyGradients(const std::vector<GradientAndVariable>& gradients,
                       const ApplyGradientsOptions& options = {}) override;
  std::vector<VariableEntry> variables() const override { return optimizer_.variables(); }

  /// What lets the steps of a MonitoredTrainingSession wait for each other. After Minimize or
  /// ApplyGradients.
  std::shared_ptr<SyncReplicasHook> MakeHook() const;

 private:
  Node* Apply(const Gradient& gradient, const VariableEntry& variable) override;

  Optimizer& optimizer_;
  const SyncReplicasOptions options_;
  SyncNodes nodes_;
};

}  // namespace tenon
