// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/session_directories.h"

#include <algorithm>

namespace tenon {
namespace {

bool HasAddress(const ClusterSpec& cluster, const std::string& address) {
  return std::any_of(cluster.jobs().begin(), cluster.jobs().end(), [&](const auto& job) {
    return std::any_of(job.second.begin(), job.second.end(),
                       [&](const auto& task) { return task.second == address; });
  });
}

}  // namespace

GrpcSessionDirectories::GrpcSessionDirectories(const ClusterSpec& own, Credentials credentials,
                                               Poller& poller, BlockingCalls& calls)
    : own_(own), credentials_(std::move(credentials)), poller_(poller), calls_(calls) {}

Status GrpcSessionDirectories::CheckAddresses(const ClusterSpec& cluster) const {
  if (credentials_.empty()) return OkStatus();
  for (const auto& [job, tasks] : cluster.jobs()) {
    for (const auto& [task, address] : tasks) {
      if (HasAddress(own_, address)) continue;
      return PermissionDenied("the session's cluster has ", address, ", which is none of ",
                              own_.ToString(), "; a server with credentials calls no others");
    }
  }
  return OkStatus();
}

Status GrpcSessionDirectories::MakeRoom() {
  const auto unused = std::find_if(directories_.begin(), directories_.end(), [](const auto& entry) {
    return entry.second.directory.use_count() == 1;
  });
  if (unused == directories_.end()) {
    return ResourceExhausted("the server's sessions use ", kMax, " clusters, as many as they may");
  }
  // Its end waits for connections to end, which the poller notices: it may be on this thread.
  const auto dying =
      std::make_shared<std::shared_ptr<GrpcWorkerDirectory>>(std::move(unused->second.directory));
  const Status status = calls_.Run([dying] { dying->reset(); });
  if (status.ok()) {
    directories_.erase(unused);
  } else {
    unused->second.directory = *dying;
  }
  return status;
}

StatusOr<std::shared_ptr<WorkerDirectory>> GrpcSessionDirectories::Get(
    const ClusterSpec& cluster, const std::string& own_task,
    const std::shared_ptr<WorkerInterface>& worker) {
  TENON_RETURN_IF_ERROR(CheckAddresses(cluster));
  MutexLock lock(mu_);
  const std::string key = StrCat(own_task, " of ", cluster.ToString());
  if (const auto found = directories_.find(key); found != directories_.end()) {
    return std::shared_ptr<WorkerDirectory>(found->second.directory);
  }
  if (directories_.size() >= kMax) TENON_RETURN_IF_ERROR(MakeRoom());
  auto directory = std::make_shared<GrpcWorkerDirectory>(cluster, credentials_, poller_);
  if (!own_task.empty()) directory->SetLocal(own_task, worker);
  directories_[key] = {directory, own_task};
  return std::shared_ptr<WorkerDirectory>(directory);
}

void GrpcSessionDirectories::Close() {
  MutexLock lock(mu_);
  for (const auto& [key, entry] : directories_) entry.directory->SetLocal(entry.own_task, nullptr);
}

}  // namespace tenon
