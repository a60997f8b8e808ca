// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/job_reports.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <deque>
#include <set>
#include <thread>

#include "core/base/mutex.h"
#include "distributed/grpc/cluster_stub.h"
#include "distributed/grpc/rpc/status.h"
#include "distributed/protocol/limits.h"
#include "distributed/protocol/server.h"

namespace tenon {
namespace {

/// How soon it is seen that nobody is to be waited for any more.
constexpr std::chrono::milliseconds kGiveUpPause{100};

/// One call to a task. A server that does not answer has ended, or never started.
using TellTask = std::function<grpc::Status(ClusterStub& stub, grpc::ClientContext* context)>;

/// Makes the call by the connection that is there. False where the other end may be no more, of
/// which a host that lost its power says nothing: a server that has been started there anew answers
/// by another connection.
bool TellBy(const std::shared_ptr<grpc::Channel>& channel, std::chrono::milliseconds limit,
            const Credentials& credentials, const TellTask& tell) {
  grpc::ClientContext context;
  const grpc::Status told = tell(*StubBy(channel, credentials, limit, &context), &context);
  return told.error_code() != grpc::StatusCode::UNAVAILABLE &&
         told.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED;
}

void TellAll(const std::vector<TaskToTell>& tasks, const TellOptions& options,
             const TellTask& tell) {
  Mutex mu;
  CondVar told;
  std::set<std::string> waiting;
  for (const TaskToTell& task : tasks) waiting.insert(task.name);
  std::deque<grpc::ClientContext> contexts;
  std::vector<std::jthread> calls;
  for (const TaskToTell& task : tasks) {
    grpc::ClientContext* const context = &contexts.emplace_back();
    calls.emplace_back([&, context] {
      if (task.channel == nullptr || !TellBy(task.channel, task.limit, options.credentials, tell)) {
        context->set_wait_for_ready(task.may_still_start);
        tell(*StubFor(task.address, options.credentials, task.limit, context), context);
      }
      MutexLock lock(mu);
      waiting.erase(task.name);
      told.NotifyAll();
    });
  }
  const auto begin = options.clock.Now();
  auto next_notice = begin + kNoticePause;
  bool given_up = false;
  MutexLock lock(mu);
  while (!waiting.empty()) {
    const auto now = options.clock.Now();
    if (!given_up && options.give_up && options.give_up()) {
      given_up = true;
      for (size_t i = 0; i < tasks.size(); ++i) {
        if (tasks[i].may_still_start) contexts[i].TryCancel();
      }
    }
    if (now >= next_notice && options.notice) {
      next_notice = now + kNoticePause;
      const std::vector<std::string> names(waiting.begin(), waiting.end());
      options.notice(StrCat("waiting to tell ", Join(names, ", "), " that this task has ended, ",
                            std::chrono::duration_cast<std::chrono::seconds>(now - begin).count(),
                            " s now: it has not answered yet"));
    }
    options.clock.WaitUntil(told, mu, now + kGiveUpPause);
  }
}

StatusOr<cluster::ServerStatusResponse> AskForStatus(const std::string& address,
                                                     std::chrono::milliseconds limit,
                                                     const Credentials& credentials) {
  grpc::ClientContext context;
  const auto stub = StubFor(address, credentials, limit, &context);
  cluster::ServerStatusResponse response;
  TENON_RETURN_IF_ERROR(
      ConnectionError(stub->ServerStatus(&context, {}, &response), address, credentials));
  return response;
}

}  // namespace

void TellTaskEnded(const std::vector<TaskToTell>& tasks, const std::string& job, int task,
                   const Status& end, const TellOptions& options) {
  cluster::TaskEndedRequest request;
  request.set_job(job);
  request.set_task(task);
  request.set_interrupted(end.code() == StatusCode::kCancelled);
  request.set_failed(!end.ok() && !request.interrupted());
  request.set_message(WireMessage(end));
  TellAll(tasks, options, [&](ClusterStub& stub, grpc::ClientContext* context) {
    cluster::TaskEndedResponse response;
    return stub.TaskEnded(context, request, &response);
  });
}

void TellShutdown(const std::vector<TaskToTell>& tasks, const std::string& reason,
                  const TellOptions& options) {
  cluster::ShutdownRequest request;
  request.set_reason(reason);
  TellAll(tasks, options, [&](ClusterStub& stub, grpc::ClientContext* context) {
    cluster::ShutdownResponse response;
    return stub.Shutdown(context, request, &response);
  });
}

StatusOr<std::string> AskForTask(const std::string& address, std::chrono::milliseconds limit,
                                 const Credentials& credentials) {
  TENON_ASSIGN_OR_RETURN(const cluster::ServerStatusResponse response,
                         AskForStatus(address, limit, credentials));
  return response.task();
}

StatusOr<std::vector<std::string>> TasksAwaitedBy(const std::string& target,
                                                  const Credentials& credentials,
                                                  std::chrono::milliseconds limit) {
  TENON_ASSIGN_OR_RETURN(const std::string address, AddressOfTarget(target));
  TENON_ASSIGN_OR_RETURN(const cluster::ServerStatusResponse response,
                         AskForStatus(address, limit, credentials));
  return std::vector<std::string>(response.awaited_tasks().begin(), response.awaited_tasks().end());
}

StatusOr<std::string> TaskAt(const std::string& target, const Credentials& credentials,
                             std::chrono::milliseconds limit) {
  TENON_ASSIGN_OR_RETURN(const std::string address, AddressOfTarget(target));
  return AskForTask(address, limit, credentials);
}

}  // namespace tenon
