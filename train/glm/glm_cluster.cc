// SPDX-License-Identifier: Apache-2.0
#include "train/glm/glm_cluster.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/strings.h"
#include "core/device/device_name.h"
#include "distributed/protocol/task_role.h"
#include "train/glm/rows/stream_fit.h"
#include "train/one_line.h"

namespace tenon {
namespace {

constexpr char kEnded[] = "the fit has ended";
constexpr std::chrono::seconds kChiefPause{1};
/// Failures one after the other, with no pass between them, until a fit is given up.
constexpr int kMostFailures = 10;

bool IsChief(const std::string& job, int task) { return job == kWorkerJob && task == 0; }

/// Ends a server when its chief has not come, or is gone, for so long as `options` have it: the
/// start-up deadline; at once when one of both lacks the other's token.
class ChiefWatch {
 public:
  ChiefWatch(Server& server, const ServerOptions& options)
      : server_(server), clock_(*options.clock), deadline_(options.start_up_deadline) {
    watcher_ = std::jthread([this] { Watch(); });
  }
  ~ChiefWatch() {
    MutexLock lock(mu_);
    has_ended_ = true;
    ended_.NotifyAll();
  }
  /// Why it has ended the server; OK when it has not.
  Status verdict() {
    MutexLock lock(mu_);
    return verdict_;
  }

 private:
  void Watch() {
    Clock::Time heard = clock_.Now();
    while (!EndsWithin(kChiefPause)) {
      const Status life = server_.AskIfAlive(kWorkerJob, 0);
      if (life.code() == StatusCode::kUnauthenticated) return End(life);
      // Who answers late is busy or slow, and is there.
      const Clock::Time now = clock_.Now();
      if (life.code() != StatusCode::kUnavailable) heard = now;
      if (now - heard < deadline_) continue;
      return End(Unavailable("the chief, ", TaskName(kWorkerJob, 0), ", has not answered for ",
                             deadline_.count() / 1000.0, " s: ", Message(life)));
    }
  }

  void End(Status verdict) {
    {
      MutexLock lock(mu_);
      verdict_ = std::move(verdict);
    }
    server_.Shutdown();
  }

  bool EndsWithin(Clock::Duration pause) {
    const Clock::Time deadline = clock_.Now() + pause;
    MutexLock lock(mu_);
    while (!has_ended_ && clock_.WaitUntil(ended_, mu_, deadline)) {
    }
    return has_ended_;
  }

  Server& server_;
  Clock& clock_;
  const std::chrono::milliseconds deadline_;
  Mutex mu_;
  CondVar ended_;
  bool has_ended_ ABSL_GUARDED_BY(mu_) = false;
  Status verdict_ ABSL_GUARDED_BY(mu_);
  std::jthread watcher_;  // behind what it uses
};

Status ServeChief(Server& server, const ServerOptions& options) {
  ChiefWatch watch(server, options);
  server.WaitForShutdown();
  const std::string why = server.why_it_ended();
  if (why == kEnded) return OkStatus();
  TENON_RETURN_IF_ERROR(watch.verdict());
  return Aborted(why);
}

/// Whether a fit failed because a task was gone or has been started anew.
bool IsLoss(const Status& status) {
  return status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kAborted;
}

std::string DeviceOf(std::string_view job, int task) {
  return TaskName(job, task) + "/device:CPU:0";
}

/// Has the coefficients of a stream be on the parameter servers, if there are any, and the fit,
/// once it is there, be kept for attempts after a loss.
void SpreadStream(Server& server, const std::function<void(const std::string& line)>& notice,
                  StreamFitOptions* stream) {
  const int num_servers = server.cluster().NumTasks(kParameterServerJob);
  for (int task = 0; task < num_servers; ++task) {
    stream->devices.push_back(DeviceOf(kParameterServerJob, task));
  }
  stream->is_there = [&server, devices = stream->devices](const std::string& device) {
    const auto found = std::find(devices.begin(), devices.end(), device);
    // The others are this task's own.
    if (found == devices.end()) return true;
    return server.AskIfAlive(kParameterServerJob, static_cast<int>(found - devices.begin())).ok();
  };
  stream->notice = notice;
  stream->ended = [stream](const StreamFit& fit) {
    stream->fit = std::make_shared<const StreamFit>(fit);
  };
}

/// DataLoss where a device of coefficients is gone before the fit is there.
Status CheckCoefficientsLive(const StreamFitOptions& stream, const Status& failure) {
  if (stream.fit != nullptr) return OkStatus();
  for (const std::string& device : stream.devices) {
    if (!stream.is_there(device)) return CoefficientsLost(device, failure);
  }
  return OkStatus();
}

}  // namespace

Status RunGlmTask(const ServerOptions& options, const OpRegistry& registry,
                  const std::function<Status(Server& server)>& fit) {
  TENON_ASSIGN_OR_RETURN(const std::unique_ptr<Server> server, Server::Start(options, registry));
  if (!IsChief(options.job, options.task)) return ServeChief(*server, options);
  const Status status = fit(*server);
  const Status why =
      status.ok() ? FailedPrecondition(kEnded)
                  : WithMessage(status, StrCat("the chief failed: ", OneLine(Message(status))));
  for (const char* job : {kParameterServerJob, kWorkerJob}) server->EndTasks(job, why);
  return status;
}

StatusOr<GlmResult> FitGlmOnWorkers(Server& server, std::string_view formula,
                                    const std::vector<std::string>& files, GlmOptions glm,
                                    const std::function<void(const std::string& line)>& notice) {
  const int num_workers = server.cluster().NumTasks(kWorkerJob);
  std::vector<bool> takes_part(num_workers, true);
  glm.make_session = [&server](const Graph& graph) { return server.MakeSession(graph); };
  int failures = 0;
  const auto progress = glm.progress;
  glm.progress = [&](const GlmIteration& iteration, const GlmPoint& at) {
    failures = 0;
    // A stream that has ended is kept as it is.
    if (!glm.stream) glm.start = at;
    if (progress) progress(iteration, at);
  };
  if (glm.stream) SpreadStream(server, notice, &*glm.stream);
  while (true) {
    GlmOptions now = glm;
    now.devices.clear();
    for (int task = 0; task < num_workers; ++task) {
      if (takes_part[task]) now.devices.push_back(DeviceOf(kWorkerJob, task));
    }
    StatusOr<GlmResult> result = FitGlm(formula, files, now);
    if (result.ok() || !IsLoss(result.status()) || ++failures > kMostFailures) return result;
    if (glm.stream) TENON_RETURN_IF_ERROR(CheckCoefficientsLive(*glm.stream, result.status()));
    int64_t left = 0;
    std::string gone;
    for (int task = 0; task < num_workers; ++task) {
      takes_part[task] = task == 0 || server.AskIfAlive(kWorkerJob, task).ok();
      left += takes_part[task] ? 1 : 0;
      if (!takes_part[task]) StrAppend(&gone, gone.empty() ? "" : ", ", kWorkerJob, " ", task);
    }
    notice(StrCat(gone.empty() ? "a worker was lost for a moment" : StrCat(gone, " is gone"),
                  "; the rows are dealt anew to ", left, " of ", num_workers,
                  " workers, and the steps go on: ", OneLine(Message(result.status()))));
  }
}

}  // namespace tenon
