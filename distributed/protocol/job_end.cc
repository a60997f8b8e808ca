// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/job_end.h"

#include <algorithm>

#include "core/device/device_name.h"
#include "distributed/protocol/limits.h"

namespace tenon {
namespace {

constexpr std::chrono::milliseconds kLongestPause{2000};
/// The same where all are about to end.
constexpr std::chrono::milliseconds kEndingPause{200};
/// A sign of life is good for so long.
constexpr std::chrono::milliseconds kLivesFor{10000};

/// How long a task that is gone may take to return, as one does that its operator starts again.
constexpr std::chrono::milliseconds kReturnLimit{30000};

std::chrono::milliseconds ReturnLimit(const JobPatience& patience) {
  if (patience.silence.count() == 0) return kReturnLimit;
  if (patience.coming.count() > 0) return patience.coming;
  return std::min(patience.silence / 2, kReturnLimit);
}

/// Between two looks.
std::chrono::milliseconds PauseOf(const JobPatience& patience) {
  std::chrono::milliseconds pause = kLongestPause;
  for (const auto limit : {patience.silence, patience.coming}) {
    if (limit.count() > 0) pause = std::min(pause, limit / 4);
  }
  return pause;
}

}  // namespace

std::string JobEnd::Named(const Task& task) const {
  return StrCat(TaskName(task.first, task.second), " at ",
                cluster_.jobs().at(task.first).at(task.second));
}

Status JobEnd::Report(const std::string& job, int task, const Status& end) {
  if (!cluster_.HasTask(job, task)) {
    return InvalidArgument(TaskName(job, task), " is not in the cluster ", cluster_.ToString());
  }
  const bool failed = !end.ok() && end.code() != StatusCode::kCancelled;
  const Status status = failed ? Aborted(TaskName(job, task), " failed: ", Message(end)) : end;
  MutexLock lock(mu_);
  const auto alive = alive_.find({job, task});
  const int64_t incarnation = alive == alive_.end() ? 0 : alive->second.incarnation;
  ended_.emplace(Task(job, task), End{status, clock_.Now(), incarnation});
  any_alive_[job] = clock_.Now();
  Changed();
  return OkStatus();
}

void JobEnd::Heard(const std::string& task, int64_t incarnation) {
  const auto name = DeviceName::Parse(task);
  if (!name.ok() || !name->job || !name->task || !cluster_.HasTask(*name->job, *name->task)) return;
  const Task heard(*name->job, *name->task);
  std::string line;
  {
    MutexLock lock(mu_);
    const auto now = any_alive_[heard.first] = clock_.Now();
    const auto end = ended_.find(heard);
    if (end != ended_.end()) {
      const bool failed = !end->second.status.ok() && !end->second.interrupted();
      // Messages that an ending process has sent before its report may arrive after it.
      if (failed || end->second.incarnation == incarnation) return;
      ended_.erase(end);
      line = StrCat(Named(heard), " is back");
    }
    alive_[heard] = {now, incarnation};
    silent_.erase(heard);
    if (gone_.erase(heard) > 0) line = StrCat(Named(heard), " is back");
  }
  Tell(line);
}

bool JobEnd::ExpectEnd(const std::string& job) {
  MutexLock lock(mu_);
  is_to_end_ = true;
  Changed();
  const auto recently = clock_.Now() - kLivesFor;
  bool any_lives = false;
  for (const auto& [task, sign] : alive_) {
    any_lives |=
        task.first == job && sign.at > recently && !ended_.contains(task) && !gone_.contains(task);
  }
  return any_lives;
}

std::optional<Status> JobEnd::Verdict(const Watch& watch) const {
  const std::string& job = watch.job_;
  const std::chrono::milliseconds limit = watch.patience_.silence;
  const std::chrono::milliseconds coming =
      watch.patience_.coming.count() > 0 ? watch.patience_.coming : limit;
  const std::chrono::milliseconds returning = ReturnLimit(watch.patience_);
  const auto any = any_alive_.find(job);
  std::vector<std::string> silent, missing;
  bool all_ended = true, all_interrupted = true, any_interrupted = false;
  Clock::Time last_end;
  for (const auto& [index, address] : cluster_.jobs().at(job)) {
    const Task task(job, index);
    if (const auto end = ended_.find(task); end != ended_.end()) {
      last_end = std::max(last_end, end->second.at);
      if (end->second.interrupted()) {
        any_interrupted = true;
        continue;
      }
      all_interrupted = false;
      if (!end->second.status.ok()) return end->second.status;
      continue;
    }
    // When the job is to end, who does not live any more has ended, though a signal left it no time
    // to report it, and who never came is not expected.
    if (is_to_end_ && (gone_.contains(task) || !alive_.contains(task))) continue;
    all_ended = false;
    if (const auto gone = gone_.find(task);
        gone != gone_.end() && limit.count() > 0 && clock_.Now() - gone->second.since > returning) {
      return DeadlineExceeded(Named(task), " is gone and did not return within ",
                              returning.count() / 1000.0, " s: ", gone->second.why);
    }
    const auto alive = alive_.find(task);
    const bool known = alive != alive_.end();
    auto since = watch.begin_;
    if (known) {
      since = std::max(since, alive->second.at);
    } else if (any != any_alive_.end()) {
      since = std::max(since, any->second);
    }
    if (limit.count() == 0 || clock_.Now() - since <= (known ? limit : coming)) continue;
    if (known) {
      silent.push_back(Named(task));
    } else {
      missing.push_back(NamedWithReason(task));
    }
  }
  // Where a signal has ended all of them, the job was ended.
  const bool may_return =
      any_interrupted && !all_interrupted && !is_to_end_ && clock_.Now() - last_end < returning;
  if (all_ended && !may_return) return OkStatus();
  if (stopped_) return Cancelled("the server was told to shut down");
  if (!missing.empty()) {
    return DeadlineExceeded("not all tasks have come within ", coming.count() / 1000.0,
                            " s: ", Join(missing, ", "));
  }
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
      alive_[task].at = any_alive_[task.first] = clock_.Now();
      silent_.erase(task);
      if (gone_.erase(task) > 0) line = StrCat(Named(task), " is back");
    } else if (life.code() == StatusCode::kUnavailable && alive_.contains(task) &&
               !ended_.contains(task) &&
               gone_.try_emplace(task, Gone{clock_.Now(), std::string(Message(life))}).second) {
      line = is_to_end_ ? StrCat(Named(task), " has ended")
                        : StrCat(Named(task), " is gone; waiting for its return: ", Message(life));
    } else if (!alive_.contains(task)) {
      silent_[task] = std::string(Message(life));
    }
  }
  Tell(line);
}

std::string JobEnd::NamedWithReason(const Task& task) const {
  const std::string name = Named(task);
  const auto silent = silent_.find(task);
  if (silent == silent_.end()) return name;
  std::string_view why = silent->second;
  if (const std::string known = StrCat("task ", name, " is "); why.starts_with(known)) {
    why.remove_prefix(known.size());
  }
  return StrCat(name, " (", why, ")");
}

std::string JobEnd::NamesToWaitFor(const std::string& job) const {
  std::vector<std::string> names;
  for (const auto& [index, address] : cluster_.jobs().at(job)) {
    const Task task(job, index);
    const auto end = ended_.find(task);
    std::string why;
    if (end != ended_.end()) {
      if (!end->second.interrupted() || is_to_end_) continue;
      why = "ended by a signal, may come again";
    } else if (is_to_end_ && (gone_.contains(task) || !alive_.contains(task))) {
      continue;
    } else if (const auto gone = gone_.find(task); gone != gone_.end()) {
      why = StrCat("gone: ", gone->second.why);
    } else if (!alive_.contains(task)) {
      names.push_back(NamedWithReason(task));
      continue;
    } else {
      continue;
    }
    names.push_back(StrCat(Named(task), " (", why, ")"));
  }
  return Join(names, ", ");
}

JobEnd::Watch::Watch(std::string job, const JobPatience& patience, Clock::Time now)
    : job_(std::move(job)),
      patience_{std::max(patience.silence, std::chrono::milliseconds(0)),
                std::max(patience.coming, std::chrono::milliseconds(0))},
      pause_(PauseOf(patience_)),
      begin_(now),
      next_(now),
      next_notice_(now + kNoticePause) {}

void JobEnd::SetNextLook(Watch& watch, Clock::Time now) {
  // Who has been stopped, or starved, heard nobody: all get their time again.
  if (now > watch.next_ + watch.pause_) {
    watch.begin_ = now;
    for (auto& [task, gone] : gone_) gone.since = now;
  }
  watch.next_ = now + (is_to_end_ ? std::min(watch.pause_, kEndingPause) : watch.pause_);
}

std::optional<Status> JobEnd::Look(Watch& watch) {
  std::vector<int> tasks;
  std::string awaited;
  {
    MutexLock lock(mu_);
    const Clock::Time now = clock_.Now();
    const bool is_due = now >= watch.next_;
    if (is_due) SetNextLook(watch, now);
    if (is_to_end_) watch.next_ = std::min(watch.next_, now + kEndingPause);
    watch.seen_ = changes_;
    waited_for_.insert(watch.job_);
    if (std::optional<Status> verdict = Verdict(watch)) return verdict;
    // Without a limit nobody is asked; a task that may return is waited for all the same.
    if (is_due && watch.patience_.silence.count() > 0) {
      tasks = BeginProbes(watch.job_);
      if (now >= watch.next_notice_) {
        watch.next_notice_ = now + kNoticePause;
        awaited = NamesToWaitFor(watch.job_);
      }
    }
  }
  if (!awaited.empty()) Tell(StrCat("waiting for ", awaited));
  for (const int task : tasks) {
    probe_(watch.job_, task, [this, job = watch.job_, task](const Status& life) {
      EndProbe({job, task}, life);
    });
  }
  return std::nullopt;
}

Status JobEnd::Wait(const std::string& job, const JobPatience& patience) {
  if (cluster_.NumTasks(job) == 0) return InvalidArgument("the cluster has no job '", job, "'");
  Watch watch(job, patience, clock_.Now());
  while (true) {
    if (std::optional<Status> verdict = Look(watch)) return *std::move(verdict);
    MutexLock lock(mu_);
    while (changes_ == watch.seen_ && clock_.WaitUntil(changed_, mu_, watch.next_)) {
    }
  }
}

int64_t JobEnd::changes() const {
  MutexLock lock(mu_);
  return changes_;
}

void JobEnd::Stop() {
  MutexLock lock(mu_);
  stopped_ = true;
  Changed();
}

std::vector<std::string> JobEnd::Ended() const {
  MutexLock lock(mu_);
  std::vector<std::string> names;
  for (const auto& [task, status] : ended_) names.push_back(TaskName(task.first, task.second));
  return names;
}

std::vector<std::string> JobEnd::Awaited() const {
  MutexLock lock(mu_);
  std::vector<std::string> names;
  for (const std::string& job : waited_for_) {
    for (const auto& [index, address] : cluster_.jobs().at(job)) {
      const Task task(job, index);
      if (!ended_.contains(task) && !alive_.contains(task)) names.push_back(NamedWithReason(task));
    }
  }
  return names;
}

std::map<int, bool> JobEnd::NotEnded(const std::string& job) const {
  std::map<int, bool> tasks;
  const auto members = cluster_.jobs().find(job);
  if (members == cluster_.jobs().end()) return tasks;
  MutexLock lock(mu_);
  for (const auto& [index, address] : members->second) {
    if (!ended_.contains({job, index})) tasks[index] = alive_.contains({job, index});
  }
  return tasks;
}

}  // namespace tenon
