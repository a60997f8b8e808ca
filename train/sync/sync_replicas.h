// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "train/optimizers/optimizer.h"
#include "train/sync/sync_nodes.h"
#include "train/sync/sync_options.h"
#include "train/sync/sync_replicas_hook.h"

namespace tenon {

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
