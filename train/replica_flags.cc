// SPDX-License-Identifier: Apache-2.0
#include "train/replica_flags.h"

#include "data/files/file.h"
#include "distributed/protocol/task_role.h"
#include "distributed/resolver/task_credentials.h"

namespace tenon {

StatusOr<ServerOptions> ReplicaFlags::Options(
    ResolvedTask task, const std::function<void(const std::string& line)>& notice) const {
  ServerOptions options;
  options.notice = notice;
  options.start_up_deadline = StartUpDeadline(cluster);
  TENON_ASSIGN_OR_RETURN(options.credentials, FindCredentials(credentials));
  options.insecure = insecure;
  if (!root.empty()) {
    options.files = FileAccess{FileAccess::Kind::kRoot, root};
    TENON_RETURN_IF_ERROR(FilesOf(*options.files).status());
  }
  TENON_RETURN_IF_ERROR(TakeTask(&task, &options));
  return options;
}

StatusOr<ResolvedTask> ResolveReplica(const ClusterFlags& flags, int num_ps, Evaluator evaluator) {
  TENON_ASSIGN_OR_RETURN(ResolvedTask task,
                         ResolveTask(flags, {.num_ps = num_ps, .chief_is_worker = true}));
  if (task.role == TaskRole::kEvaluator) {
    if (evaluator == Evaluator::kWelcome) return task;
    return FailedPrecondition(
        "this task is an evaluator (TF_CONFIG), for which this program has no work: start it for "
        "the tasks of ps, chief and worker");
  }
  if (!task.is_alone() && !task.registration && !RoleOfJob(task.job)) {
    return FailedPrecondition("this task is of job '", task.job, "', wanted ps or worker");
  }
  return task;
}

Status RunReplica(const ReplicaFlags& flags, const OpRegistry& registry,
                  const std::function<Status(Server& server)>& train,
                  const std::function<void(const std::string& line)>& notice) {
  TENON_ASSIGN_OR_RETURN(const ResolvedTask task, ResolveReplica(flags.cluster, 1));
  if (notice && (flags.cluster.check_config || task.is_by_environment)) notice(task.Describe());
  if (flags.cluster.check_config) return OkStatus();
  if (task.is_alone()) {
    return InvalidArgument(
        "nothing says which task of which cluster this is: give --ps_hosts, --worker_hosts, "
        "--job_name and --task_index, or TF_CONFIG, or start it by tenon launch, srun or mpirun");
  }
  TENON_ASSIGN_OR_RETURN(const ServerOptions options, flags.Options(task, notice));
  return RunReplica(options, registry, train);
}

}  // namespace tenon
