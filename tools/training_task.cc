// SPDX-License-Identifier: Apache-2.0
#include "tools/training_task.h"

namespace tenon::tools {

StatusOr<ResolvedTask> ResolveTrainingTask(const ClusterFlags& flags, int num_ps,
                                           Evaluator evaluator) {
  StatusOr<ResolvedTask> task = ResolveReplica(flags, num_ps, evaluator);
  if (task.ok()) return task;
  return WrongUsage(Message(task.status()));
}

bool PrintTask(const ResolvedTask& task, const ClusterFlags& flags) {
  if (flags.check_config || task.is_by_environment) PrintNotice(task.Describe());
  return flags.check_config;
}

}  // namespace tenon::tools
