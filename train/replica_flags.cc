// SPDX-License-Identifier: Apache-2.0
#include "train/replica_flags.h"

#include <cstdlib>

#include "data/file.h"

namespace tenon {

StatusOr<ServerOptions> ReplicaFlags::Options() const {
  if (job_name != "ps" && job_name != "worker") {
    return InvalidArgument("--job_name is '", job_name, "', wanted ps or worker");
  }
  ServerOptions options;
  options.job = job_name;
  options.task = task_index;
  TENON_RETURN_IF_ERROR(options.cluster.AddJob("ps", ps_hosts));
  TENON_RETURN_IF_ERROR(options.cluster.AddJob("worker", worker_hosts));
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
