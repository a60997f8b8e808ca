// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/session_tasks.h"

#include <algorithm>

#include "core/device/device_name.h"

namespace tenon {
namespace {

/// The pause before a task that did not answer is asked again: a part of the time until then, since
/// the tasks of a job start at about the same time.
constexpr std::chrono::milliseconds kShortPause{1}, kLongPause{500};
constexpr int kPauseDivisor = 4;

}  // namespace

bool SessionTasks::TaskAllowed(const std::string& task) const {
  if (config_.device_filters().empty() || task == environment_.task) return true;
  const auto name = DeviceName::Parse(task);
  return name.ok() && std::any_of(config_.device_filters().begin(), config_.device_filters().end(),
                                  [&](const std::string& filter) {
                                    const auto f = DeviceName::Parse(filter);
                                    return f.ok() && f->Matches(*name);
                                  });
}

std::vector<std::string> SessionTasks::TasksFor(const DeviceName& name) const {
  std::vector<std::string> tasks;
  for (const auto& [job, members] : environment_.cluster.jobs()) {
    if (name.job && *name.job != job) continue;
    for (const auto& [task, address] : members) {
      if (name.task && *name.task != task) continue;
      if (TaskAllowed(TaskName(job, task))) tasks.push_back(TaskName(job, task));
    }
  }
  return tasks;
}

StatusOr<std::set<std::string>> SessionTasks::Wanted(const Graph& graph, int first_id) const {
  std::set<std::string> wanted;
  StringSet seen;
  for (int id = first_id; id < graph.num_ids(); ++id) {
    const Node* const n = graph.node(id);
    if (n == nullptr) continue;
    const std::string& request = n->requested_device();
    if (request.empty() || !seen.insert(request).second) continue;
    TENON_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(request));
    if (!name.job && !name.task) continue;  // stays on the master's own task
    for (std::string& task : TasksFor(name)) wanted.insert(std::move(task));
  }
  wanted.insert(environment_.task);
  return wanted;
}

std::set<std::string> SessionTasks::All() const {
  std::set<std::string> tasks;
  for (const std::string& task : environment_.cluster.TaskNames()) {
    if (TaskAllowed(task)) tasks.insert(task);
  }
  return tasks;
}

Status SessionTasks::Reach(const std::set<std::string>& tasks, Cancellation* cancellation) {
  const Clock::Time begin = environment_.clock->Now();
  Clock::Time next_notice = begin + kNoticePause;
  std::map<std::string, Status> missing;
  for (const std::string& task : tasks) {
    if (!reached_.contains(task)) missing.emplace(task, OkStatus());
  }
  while (!missing.empty()) {
    WorkerCalls<GetStatusRequest, GetStatusResponse> calls(&WorkerInterface::GetStatusAsync);
    std::vector<std::string> asked;
    for (const auto& [task, last] : missing) {
      TENON_ASSIGN_OR_RETURN(auto worker, environment_.workers->Get(task));
      calls.Start(std::move(worker), GetStatusRequest());
      asked.push_back(task);
    }
    TENON_RETURN_IF_ERROR(calls.Wait(cancellation));
    std::map<std::string, std::vector<DeviceAttributes>> answered;
    for (size_t i = 0; i < asked.size(); ++i) {
      const Status& status = calls.status(i);
      if (status.ok()) {
        const auto& devices = calls.response(i).device_attributes();
        std::vector<DeviceAttributes>& named = answered[asked[i]];
        named = {devices.begin(), devices.end()};
        // The session may know the task by another name than its server does.
        for (DeviceAttributes& d : named) {
          d.set_name(StrCat(asked[i], DevicePartOf(d.name())));
        }
        missing.erase(asked[i]);
      } else if (status.code() == StatusCode::kUnavailable ||
                 status.code() == StatusCode::kDeadlineExceeded) {
        missing[asked[i]] = status;
      } else {
        return status;
      }
    }
    TENON_RETURN_IF_ERROR(Open(answered, cancellation));
    if (missing.empty()) break;
    const Clock::Time now = environment_.clock->Now();
    if (now - begin >= environment_.start_up_deadline) return Late(missing);
    if (now >= next_notice && environment_.notice) {
      next_notice = now + kNoticePause;
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - begin).count();
      for (const auto& [task, last] : missing) {
        environment_.notice(StrCat(environment_.task, " waits for ", task, " at ",
                                   environment_.workers->Address(task), ", ", seconds,
                                   " s now; last error: ", Message(last)));
      }
    }
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - begin);
    TENON_RETURN_IF_ERROR(Pause(*environment_.clock,
                                std::clamp(waited / kPauseDivisor, kShortPause, kLongPause),
                                cancellation));
  }
  return OkStatus();
}

Status SessionTasks::Late(const std::map<std::string, Status>& late) const {
  std::vector<std::string> fine;
  for (const auto& [name, devices] : reached_) fine.push_back(name);
  const auto& [task, last] = *late.begin();
  std::vector<std::string> others;
  for (auto it = std::next(late.begin()); it != late.end(); ++it) others.push_back(it->first);
  return DeadlineExceeded(
      "task ", task, " at ", environment_.workers->Address(task), " did not answer within ",
      environment_.start_up_deadline.count() / 1000.0, " s; last error: ", Message(last),
      others.empty() ? "" : "; nor did: ", Join(others, ", "),
      "; tasks that answered: ", fine.empty() ? "none" : Join(fine, ", "));
}

CreateWorkerSessionRequest SessionTasks::SessionRequest(const std::string& task) const {
  const auto name = DeviceName::Parse(task);
  CreateWorkerSessionRequest request;
  request.set_session_handle(handle_);
  request.mutable_server_def()->set_protocol("grpc");
  request.mutable_server_def()->set_job_name(name->job.value_or(""));
  request.mutable_server_def()->set_task_index(name->task.value_or(0));
  if (environment_.session_cluster) {
    *request.mutable_server_def()->mutable_cluster() = *environment_.session_cluster;
  }
  request.set_master_task(environment_.identity);
  request.set_master_incarnation(static_cast<int64_t>(environment_.devices[0]->incarnation()));
  request.set_isolate_session_state(config_.isolate_session_state() ||
                                    environment_.session_cluster.has_value());
  return request;
}

Status SessionTasks::Open(const std::map<std::string, std::vector<DeviceAttributes>>& answered,
                          Cancellation* cancellation) {
  WorkerCalls<CreateWorkerSessionRequest, CreateWorkerSessionResponse> calls(
      &WorkerInterface::CreateWorkerSessionAsync);
  for (const auto& [task, devices] : answered) {
    TENON_ASSIGN_OR_RETURN(auto worker, environment_.workers->Get(task));
    opened_.insert(task);
    calls.Start(std::move(worker), SessionRequest(task));
  }
  TENON_RETURN_IF_ERROR(calls.Wait(cancellation));
  size_t i = 0;
  for (const auto& [task, devices] : answered) {
    TENON_RETURN_IF_ERROR(calls.status(i++));
    reached_[task] = devices;
  }
  return OkStatus();
}

void SessionTasks::Touch() {
  WorkerCalls<CreateWorkerSessionRequest, CreateWorkerSessionResponse> calls(
      &WorkerInterface::CreateWorkerSessionAsync);
  for (const auto& [task, devices] : reached_) {
    auto worker = environment_.workers->Get(task);
    if (worker.ok()) calls.Start(*std::move(worker), SessionRequest(task));
  }
}

void SessionTasks::Delete(WorkerDeletions* deletions) {
  DeleteWorkerSessionRequest request;
  request.set_session_handle(handle_);
  for (const std::string& task : std::exchange(opened_, {})) {
    auto worker = environment_.workers->Get(task);
    if (worker.ok()) deletions->Start(*std::move(worker), request);
  }
}

}  // namespace tenon
