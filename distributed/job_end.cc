// SPDX-License-Identifier: Apache-2.0
#include "distributed/job_end.h"

#include <algorithm>

#include "core/device_name.h"
#include "distributed/limits.h"

namespace tenon {
namespace {

constexpr std::chrono::milliseconds kLongestPause{2000};

/// How long a task that is gone may take to return, as one does that its operator starts again.
constexpr std::chrono::milliseconds kReturnLimit{30000};

std::chrono::milliseconds ReturnLimit(std::chrono::milliseconds limit) {
  return limit.count() > 0 ? std::min(limit / 2, kReturnLimit) : kReturnLimit;
}

}  // namespace

std::string JobEnd::Named(const Task& task) const {
  return StrCat(TaskName(task.first, task.second), " at ",
                cluster_.jobs().at(task.first).at(task.second));
}

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

void JobEnd::Heard(const std::string& task) {
  const auto name = DeviceName::Parse(task);
  if (!name.ok() || !name->job || !name->task || !cluster_.HasTask(*name->job, *name->task)) return;
  const Task heard(*name->job, *name->task);
  MutexLock lock(mu_);
  alive_[heard] = any_alive_[heard.first] = Clock::now();
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
    if (const auto gone = gone_.find(task);
        gone != gone_.end() && limit.count() > 0 &&
        Clock::now() - gone->second.since > ReturnLimit(limit)) {
      return DeadlineExceeded(Named(task), " is gone and did not return within ",
                              ReturnLimit(limit).count() / 1000.0, " s: ", gone->second.why);
    }
    const auto alive = alive_.find(task);
    const bool known = alive != alive_.end();
    auto since = begin;
    if (known) {
      since = std::max(since, alive->second);
    } else if (any != any_alive_.end()) {
      since = std::max(since, any->second);
    }
    if (limit.count() > 0 && Clock::now() - since > limit) {
      silent.push_back(StrCat(Named(task), known ? "" : " (never heard of)"));
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

void JobEnd::EndProbe(const Task& task, const Status& life) {
  std::string line;
  {
    MutexLock lock(mu_);
    probed_.erase(task);
    if (life.ok()) {
      alive_[task] = any_alive_[task.first] = Clock::now();
      if (gone_.erase(task) > 0) line = StrCat(Named(task), " is back");
    } else if (life.code() == StatusCode::kUnavailable && alive_.contains(task) &&
               !ended_.contains(task) &&
               gone_.try_emplace(task, Gone{Clock::now(), std::string(Message(life))}).second) {
      line = StrCat(Named(task), " is gone; waiting for its return: ", Message(life));
    }
  }
  Tell(line);
}

std::string JobEnd::Unheard(const std::string& job) const {
  std::vector<std::string> names;
  for (const auto& [index, address] : cluster_.jobs().at(job)) {
    const Task task(job, index);
    if (!ended_.contains(task) && !alive_.contains(task)) names.push_back(Named(task));
  }
  return Join(names, ", ");
}

Status JobEnd::Wait(const std::string& job, std::chrono::milliseconds limit) {
  if (cluster_.NumTasks(job) == 0) return InvalidArgument("the cluster has no job '", job, "'");
  const auto pause = std::min(limit / 4, kLongestPause);
  auto begin = Clock::now();
  auto next_probes = begin;
  auto next_notice = begin + kNoticePause;
  while (true) {
    std::vector<int> tasks;
    std::string unheard;
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
          if (now > next_probes + pause) {
            begin = now;
            for (auto& [task, gone] : gone_) gone.since = now;
          }
          next_probes = now + pause;
          if (now >= next_notice) {
            next_notice = now + kNoticePause;
            unheard = Unheard(job);
          }
        }
      }
      tasks = BeginProbes(job);
    }
    if (!unheard.empty()) Tell(StrCat("waiting for ", unheard));
    for (const int task : tasks) {
      probe_(job, task, [this, job, task](const Status& life) { EndProbe({job, task}, life); });
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
