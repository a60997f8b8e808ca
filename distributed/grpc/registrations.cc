// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/registrations.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/plural.h"
#include "core/base/strings.h"
#include "distributed/protocol/cluster_spec.h"
#include "distributed/protocol/task_role.h"

namespace tenon {
namespace {

constexpr int kMaxTasks = 100000;

std::string SizeText(int num_ps, int num_workers) {
  return StrCat(num_ps, " ps and ", Plural(num_workers, "worker"));
}

}  // namespace

Status Registrations::Register(const cluster::RegisterTaskRequest& request,
                               cluster::RegisterTaskResponse* response) {
  MutexLock lock(mu_);
  ForgetSilent();
  auto task = std::find_if(tasks_.begin(), tasks_.end(), [&](const Task& known) {
    return known.request.process() == request.process();
  });
  if (task == tasks_.end()) {
    TENON_RETURN_IF_ERROR(Check(request));
    num_ps_ = request.num_ps();
    num_workers_ = request.num_workers();
    task = tasks_.insert(tasks_.end(), Task{.request = request, .seen = {}, .job = {}});
    if (static_cast<int>(tasks_.size()) == size()) Assign();
  }
  task->seen = clock_.Now();
  response->set_registered(static_cast<int>(tasks_.size()));
  if (!complete_) return OkStatus();
  task->knows = true;
  response->set_complete(true);
  response->set_job(task->job);
  response->set_task(task->index);
  for (int i = 0; i < num_ps_; ++i) response->add_ps_hosts();
  for (int i = 0; i < num_workers_; ++i) response->add_worker_hosts();
  for (const Task& one : tasks_) {
    auto* const hosts = one.job == kParameterServerJob ? response->mutable_ps_hosts()
                                                       : response->mutable_worker_hosts();
    *hosts->Mutable(one.index) = one.request.address();
  }
  return OkStatus();
}

bool Registrations::all_know() const {
  MutexLock lock(mu_);
  return complete_ &&
         std::all_of(tasks_.begin(), tasks_.end(), [](const Task& task) { return task.knows; });
}

void Registrations::ForgetSilent() {
  if (complete_) return;
  const Clock::Time now = clock_.Now();
  std::erase_if(tasks_, [&](const Task& task) { return now - task.seen > kLease; });
}

Status Registrations::Check(const cluster::RegisterTaskRequest& request) const {
  const int num_ps = request.num_ps(), num_workers = request.num_workers();
  if (num_ps < 0 || num_workers < 1 || num_ps > kMaxTasks || num_workers > kMaxTasks) {
    return InvalidArgument("found a job of ", SizeText(num_ps, num_workers), ", wanted 1 to ",
                           kMaxTasks, " workers and 0 to ", kMaxTasks, " ps");
  }
  if (request.process().empty() || (request.has_task() && request.job().empty())) {
    return InvalidArgument("a task without the name of its process or job");
  }
  ClusterSpec address;
  TENON_RETURN_IF_ERROR(address.AddTask(kWorkerJob, 0, request.address()));
  if (complete_) {
    return FailedPrecondition("all tasks of the job have registered already: ",
                              SizeText(num_ps_, num_workers_), "; this is one more");
  }
  if (!tasks_.empty() && (num_ps != num_ps_ || num_workers != num_workers_)) {
    return InvalidArgument("this task has --num_ps ", num_ps, " and --num_workers ", num_workers,
                           ", and the one at ", tasks_.front().request.address(), " has --num_ps ",
                           num_ps_, " and --num_workers ", num_workers_);
  }
  if (request.job().empty()) return OkStatus();
  return CheckRoom(request);
}

Status Registrations::CheckRoom(const cluster::RegisterTaskRequest& request) const {
  const std::string& job = request.job();
  if (job != kParameterServerJob && job != kWorkerJob) {
    return InvalidArgument("found job '", job, "', wanted ps or worker");
  }
  const int room = job == kParameterServerJob ? request.num_ps() : request.num_workers();
  if (request.has_task() && (request.task() < 0 || request.task() >= room)) {
    return InvalidArgument("this is task ", request.task(), " of job ", job,
                           ", of which there are ", room, "; tasks are counted from 0");
  }
  int taken = 0;
  for (const Task& task : tasks_) {
    if (task.request.job() != job) continue;
    ++taken;
    if (request.has_task() && task.request.has_task() && request.task() == task.request.task()) {
      return AlreadyExists(TaskName(job, request.task()), " has registered already, at ",
                           task.request.address(), ": each process has a --task_index of its own");
    }
  }
  if (taken == room) {
    return FailedPrecondition("job ", job, " has ", room,
                              room == 1 ? " task, which has" : " tasks, which have",
                              " registered already; this is one more");
  }
  return OkStatus();
}

void Registrations::Assign() {
  std::set<std::pair<std::string, int>> free;
  for (int i = 0; i < num_ps_; ++i) free.emplace(kParameterServerJob, i);
  for (int i = 0; i < num_workers_; ++i) free.emplace(kWorkerJob, i);
  const auto take = [&](Task& task, std::pair<std::string, int> which) {
    free.erase(which);
    std::tie(task.job, task.index) = std::move(which);
  };
  const auto first_of = [&](const std::string& job) { return *free.lower_bound({job, 0}); };
  for (Task& task : tasks_) {
    if (task.request.has_task()) take(task, {task.request.job(), task.request.task()});
  }
  for (Task& task : tasks_) {
    const bool any = !task.request.has_task() && !task.request.job().empty();
    if (any) take(task, first_of(task.request.job()));
  }
  // "ps" stands before "worker".
  for (Task& task : tasks_) {
    if (task.request.job().empty()) take(task, *free.begin());
  }
  complete_ = true;
}

}  // namespace tenon
