// SPDX-License-Identifier: Apache-2.0
#include "distributed/job_end.h"

#include <algorithm>

namespace tenon {
namespace {

constexpr std::chrono::milliseconds kLongestPause{5000};

}  // namespace

Status JobEnd::Report(const std::string& job, int task, bool failed, const std::string& message) {
  if (!cluster_.HasTask(job, task)) {
    return InvalidArgument(TaskName(job, task), " is not in the cluster ", cluster_.ToString());
  }
  const Status status = failed ? Aborted(TaskName(job, task), " failed: ", message) : OkStatus();
  MutexLock lock(mu_);
  ended_.emplace(Task(job, task), status);
  any_alive_[job] = Clock::now();
  changed_.NotifyAll();
  return OkStatus();
}

std::optional<Status> JobEnd::Verdict(const std::string& job, std::chrono::milliseconds limit,
                                      Clock::time_point begin) const {
  const auto any = any_alive_.find(job);
  std::vector<std::string> silent;
  bool all_ended = true;
  for (const auto& [index, address] : cluster_.jobs().at(job)) {
    const Task task(job, index);
    if (const auto end = ended_.find(task); end != ended_.end()) {
      if (!end->second.ok()) return end->second;
      continue;
    }
    all_ended = false;
    const auto alive = alive_.find(task);
    const bool known = alive != alive_.end();
    auto since = begin;
    if (known) {
      since = std::max(since, alive->second);
    } else if (any != any_alive_.end()) {
      since = std::max(since, any->second);
    }
    if (limit.count() > 0 && Clock::now() - since > limit) {
      silent.push_back(
          StrCat(TaskName(job, index), " at ", address, known ? "" : " (never heard of)"));
    }
  }
  if (all_ended) return OkStatus();
  if (stopped_) return Cancelled("the server was told to shut down");
  if (silent.empty()) return std::nullopt;
  return DeadlineExceeded("no sign of life for ", limit.count() / 1000.0, " s from ",
                          Join(silent, ", "));
}

std::vector<int> JobEnd::BeginProbes(const std::string& job) {
  std::vector<int> tasks;
  for (const auto& [index, address] : cluster_.jobs().at(job)) {
    const Task task(job, index);
    if (!ended_.contains(task) && probed_.insert(task).second) tasks.push_back(index);
  }
  return tasks;
}

void JobEnd::EndProbe(const Task& task, bool alive) {
  MutexLock lock(mu_);
  probed_.erase(task);
  if (alive) alive_[task] = any_alive_[task.first] = Clock::now();
}

Status JobEnd::Wait(const std::string& job, std::chrono::milliseconds limit) {
  if (cluster_.NumTasks(job) == 0) return InvalidArgument("the cluster has no job '", job, "'");
  const auto pause = std::min(limit / 4, kLongestPause);
  auto begin = Clock::now();
  auto next_probes = begin;
  while (true) {
    std::vector<int> tasks;
    {
      MutexLock lock(mu_);
      bool due = false;
      while (true) {
        if (std::optional<Status> verdict = Verdict(job, limit, begin)) return *std::move(verdict);
        if (due) break;
        if (limit.count() <= 0) {
          changed_.Wait(mu_);
        } else if (!changed_.WaitUntil(mu_, next_probes)) {
          due = true;
          const auto now = Clock::now();
          // Who has been stopped, or starved, heard nobody: all get their time again.
          if (now > next_probes + pause) begin = now;
          next_probes = now + pause;
        }
      }
      tasks = BeginProbes(job);
    }
    for (const int task : tasks) {
      probe_(job, task, [this, job, task](bool alive) { EndProbe({job, task}, alive); });
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
