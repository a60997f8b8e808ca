// SPDX-License-Identifier: Apache-2.0
#include "distributed/job_end.h"

namespace tenon {

Status JobEnd::Report(const std::string& job, int task, bool failed, const std::string& message) {
  if (!cluster_.HasTask(job, task)) {
    return InvalidArgument(TaskName(job, task), " is not in the cluster ", cluster_.ToString());
  }
  const Status status =
      failed ? Aborted(TaskName(job, task), " failed: ", message) : OkStatus();
  MutexLock lock(mu_);
  ended_.emplace(std::pair(job, task), status);
  changed_.NotifyAll();
  return OkStatus();
}

std::string JobEnd::Missing(const std::string& job) const {
  std::vector<std::string> names;
  for (const auto& [task, address] : cluster_.jobs().at(job)) {
    if (!ended_.contains({job, task})) names.push_back(StrCat(TaskName(job, task), " at ", address));
  }
  return Join(names, ", ");
}

Status JobEnd::Wait(const std::string& job, std::chrono::milliseconds limit) {
  const int wanted = cluster_.NumTasks(job);
  if (wanted == 0) return InvalidArgument("the cluster has no job '", job, "'");
  MutexLock lock(mu_);
  int ended = -1;
  auto deadline = std::chrono::steady_clock::now();
  while (true) {
    int now = 0;
    for (const auto& [task, status] : ended_) {
      if (task.first != job) continue;
      if (!status.ok()) return status;
      ++now;
    }
    if (now == wanted) return OkStatus();
    if (stopped_) return Cancelled("the server was told to shut down");
    if (now != ended) deadline = std::chrono::steady_clock::now() + limit;
    ended = now;
    // Nobody has to be quick before the first has ended: training takes as long as it takes.
    if (limit.count() == 0 || ended == 0) {
      changed_.Wait(mu_);
    } else if (!changed_.WaitUntil(mu_, deadline)) {
      return DeadlineExceeded(wanted - ended, " of ", wanted, " tasks of job '", job,
                              "' did not report their end within ", limit.count() / 1000.0,
                              " s after the last that did: ", Missing(job));
    }
  }
}

void JobEnd::Stop() {
  MutexLock lock(mu_);
  stopped_ = true;
  changed_.NotifyAll();
}

std::vector<std::string> JobEnd::Ended() const {
  MutexLock lock(mu_);
  std::vector<std::string> names;
  for (const auto& [task, status] : ended_) names.push_back(TaskName(task.first, task.second));
  return names;
}

}  // namespace tenon
