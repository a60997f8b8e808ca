// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "core/base/status.h"
#include "distributed/protocol/server.h"
#include "train/replica_flags.h"

namespace tenon {

/// Whether the training whose checkpoints are followed goes on, for
/// EvaluationOptions::training_goes_on.
using TrainingGoesOn = std::function<StatusOr<bool>()>;

/// What the tasks of TrainAndEvaluate do, by name.
struct TrainAndEvaluateOptions {
  /// A worker's training; with null in a process that is alone.
  std::function<Status(Server* server)> train;
  /// The evaluator's work: builds the graph that it evaluates, on no server, and calls
  /// EvaluateCheckpoints. In a process that is alone it comes after the training, whose latest
  /// checkpoint it evaluates: TrainingGoesOn is empty then.
  std::function<Status(const TrainingGoesOn& training_goes_on)> evaluate;
  /// Parameter servers among ranks, when no flag says.
  int num_ps = 1;
  /// Gets lines for people; may be null.
  std::function<void(const std::string& line)> notice = {};
};

/// Takes part in a job that trains, whose evaluator follows the checkpoints
/// (tf.estimator.train_and_evaluate), as the task that `flags` and the environment say: the chief,
/// which is worker 0, a worker or a parameter server as RunReplica; the evaluator, of TF_CONFIG or
/// --job_name=evaluator, until the chief's server has gone; or all in turn, where the process is
/// alone. With flags.cluster.check_config it only says who it is.
Status TrainAndEvaluate(const ReplicaFlags& flags, const OpRegistry& registry,
                        const TrainAndEvaluateOptions& options);

/// For the evaluator `task`: whether the chief of its cluster lives, which may take
/// `start_up_deadline` to come. InvalidArgument when the cluster has no worker.
StatusOr<TrainingGoesOn> LifeOfTraining(
    const ResolvedTask& task, const Credentials& credentials,
    std::chrono::milliseconds start_up_deadline,
    const std::function<void(const std::string& line)>& notice = {});

}  // namespace tenon
