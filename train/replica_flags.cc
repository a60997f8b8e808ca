// SPDX-License-Identifier: Apache-2.0
#include "train/replica_flags.h"

#include <cstdlib>

#include "data/files/file.h"
#include "distributed/protocol/task_role.h"

namespace tenon {

StatusOr<ServerOptions> ReplicaFlags::Options() const {
  const auto role = RoleOfJob(job_name);
  if (role != TaskRole::kParameterServer && role != TaskRole::kWorker) {
    return InvalidArgument("--job_name is '", job_name, "', wanted ps or worker");
  }
  ServerOptions options;
  options.job = job_name;
  options.task = task_index;
  if (!ps_hosts.empty()) {
    TENON_RETURN_IF_ERROR(options.cluster.AddJob(kParameterServerJob, ps_hosts));
  }
  TENON_RETURN_IF_ERROR(options.cluster.AddJob(kWorkerJob, worker_hosts));
  TENON_ASSIGN_OR_RETURN(options.credentials, ReadCredentials(credentials));
  options.insecure = insecure;
  if (!root.empty()) {
    options.files = FileAccess{FileAccess::Kind::kRoot, root};
    TENON_RETURN_IF_ERROR(FilesOf(*options.files).status());
  }
  return options;
}

Status CheckNoTfConfig() {
  const char* const config = std::getenv("TF_CONFIG");
  if (config == nullptr || *config == '\0') return OkStatus();
  return InvalidArgument(
      "TF_CONFIG is set, but not read: give the cluster by --ps_hosts, "
      "--worker_hosts, --job_name and --task_index, or unset it");
}

Status RunReplica(const ReplicaFlags& flags, const OpRegistry& registry,
                  const std::function<Status(Server& server)>& train,
                  const std::function<void(const std::string& line)>& notice) {
  TENON_ASSIGN_OR_RETURN(ServerOptions options, flags.Options());
  options.notice = notice;
  return RunReplica(options, registry, train);
}

}  // namespace tenon
