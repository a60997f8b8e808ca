// SPDX-License-Identifier: Apache-2.0
#include "train/evaluation/train_and_evaluate.h"

#include <memory>
#include <utility>

#include "distributed/protocol/task_role.h"
#include "distributed/resolver/task_credentials.h"
#include "train/evaluation/training_life.h"
#include "train/replica.h"

namespace tenon {

StatusOr<TrainingGoesOn> LifeOfTraining(
    const ResolvedTask& task, const Credentials& credentials,
    std::chrono::milliseconds start_up_deadline,
    const std::function<void(const std::string& line)>& notice) {
  const auto chief = task.cluster.Address(kWorkerJob, 0);
  if (!chief.ok()) {
    return InvalidArgument("the evaluator has no chief to ask whether training goes on: ",
                           Message(chief.status()));
  }
  const auto life =
      std::make_shared<TrainingLife>(TrainingLifeOptions{.chief = *chief,
                                                         .credentials = credentials,
                                                         .start_up_deadline = start_up_deadline,
                                                         .notice = notice});
  return TrainingGoesOn([life] { return life->GoesOn(); });
}

Status TrainAndEvaluate(const ReplicaFlags& flags, const OpRegistry& registry,
                        const TrainAndEvaluateOptions& options) {
  TENON_ASSIGN_OR_RETURN(const ResolvedTask task,
                         ResolveReplica(flags.cluster, options.num_ps, Evaluator::kWelcome));
  if (options.notice && (flags.cluster.check_config || task.is_by_environment)) {
    options.notice(task.Describe());
  }
  if (flags.cluster.check_config) return OkStatus();
  if (task.is_alone()) {
    TENON_RETURN_IF_ERROR(options.train(nullptr));
    return options.evaluate({});
  }
  if (task.role == TaskRole::kEvaluator) {
    TENON_ASSIGN_OR_RETURN(const Credentials credentials, FindCredentials(flags.credentials));
    TENON_ASSIGN_OR_RETURN(
        const TrainingGoesOn goes_on,
        LifeOfTraining(task, credentials, StartUpDeadline(flags.cluster), options.notice));
    return options.evaluate(goes_on);
  }
  TENON_ASSIGN_OR_RETURN(const ServerOptions server_options, flags.Options(task, options.notice));
  return RunReplica(server_options, registry,
                    [&](Server& server) { return options.train(&server); });
}

}  // namespace tenon
