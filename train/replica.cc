// SPDX-License-Identifier: Apache-2.0
#include "train/replica.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/strings.h"
#include "core/device/device_name.h"
#include "distributed/protocol/task_role.h"
#include "train/one_line.h"
#include "train/sessions/stop_signal.h"

namespace tenon {
namespace {

constexpr std::chrono::minutes kWorkerTimeout{5};
/// Between two questions about who has not come, and the limit for an answer.
constexpr std::chrono::milliseconds kAwaitedPause{1000}, kAwaitedDeadline{3000};
/// How long parameter servers that are to hear of a failed start may take to listen.
constexpr std::chrono::milliseconds kServersWait{10000};
constexpr std::chrono::milliseconds kSignalPause{50};
/// Between two looks at whether the other workers have ended.
constexpr std::chrono::milliseconds kAlivePause{50};
/// Where nobody listens, a connection is refused so soon.
constexpr std::chrono::seconds kRefusesWithin{1};
constexpr std::chrono::seconds kRefusedFor{2};

void Notice(const ServerOptions& options, const std::string& line) {
  if (options.notice) options.notice(line);
}

/// Which tasks have ended, or died, of those that are asked now and then whether they live.
class EndedTasks {
 public:
  explicit EndedTasks(Clock& clock) : clock_(clock) {}

  bool HasEnded(int task, const std::function<Status()>& ask) {
    const Clock::Time asked = clock_.Now();
    const Status life = ask();
    const Clock::Time now = clock_.Now();
    if (life.code() != StatusCode::kUnavailable) {
      refused_since_.erase(task);
      return false;
    }
    // Who hangs takes no connection either, but is there: that fails late, and for a moment after
    // it every question fails at once.
    if (now - asked > kRefusesWithin) {
      hangs_.insert(task);
      refused_since_.erase(task);
      return false;
    }
    if (!hangs_.contains(task)) return true;
    return now - refused_since_.try_emplace(task, now).first->second > kRefusedFor;
  }

 private:
  Clock& clock_;
  std::set<int> hangs_;
  std::map<int, Clock::Time> refused_since_;
};

/// Ends a worker's server when the start-up deadline has passed and another worker has not come. A
/// parameter server knows who has, and also who has trained and ended before this one was started.
class ComingWatch {
 public:
  ComingWatch(Server& server, const ServerOptions& options) : server_(server), options_(options) {
    const auto servers = options.cluster.jobs().find(kParameterServerJob);
    if (servers == options.cluster.jobs().end()) return;
    for (const auto& [task, address] : servers->second) servers_.push_back("grpc://" + address);
    watcher_ = std::jthread([this] { Watch(); });
  }
  ~ComingWatch() {
    MutexLock lock(mu_);
    is_over_ = true;
    over_.NotifyAll();
  }
  /// Why it has ended the server; OK when it has not.
  Status verdict() {
    MutexLock lock(mu_);
    return verdict_;
  }

 private:
  void Watch() {
    auto pause = std::chrono::duration_cast<Clock::Duration>(options_.start_up_deadline);
    while (!IsOverWithin(pause)) {
      pause = kAwaitedPause;
      const std::optional<std::vector<std::string>> awaited = Awaited();
      if (!awaited) continue;  // no parameter server answers, which the session sees, too
      if (awaited->empty()) return;
      {
        MutexLock lock(mu_);
        verdict_ = DeadlineExceeded("not all tasks have come within ",
                                    options_.start_up_deadline.count() / 1000.0,
                                    " s (--start_up_deadline): ", Join(*awaited, ", "));
      }
      return server_.Shutdown();
    }
  }

  /// The tasks that have not come, by the first parameter server that answers; none by one that is
  /// not Tenon's.
  std::optional<std::vector<std::string>> Awaited() const {
    for (const std::string& target : servers_) {
      auto awaited = TasksAwaitedBy(target, options_.credentials, kAwaitedDeadline);
      if (awaited.ok()) return *std::move(awaited);
      if (awaited.status().code() == StatusCode::kUnimplemented) return std::vector<std::string>();
    }
    return std::nullopt;
  }

  bool IsOverWithin(Clock::Duration pause) {
    const Clock::Time end = options_.clock->Now() + pause;
    MutexLock lock(mu_);
    while (!is_over_ && options_.clock->WaitUntil(over_, mu_, end)) {
    }
    return is_over_;
  }

  Server& server_;
  const ServerOptions& options_;
  std::vector<std::string> servers_;  // "grpc://host:port"
  Mutex mu_;
  CondVar over_;
  bool is_over_ ABSL_GUARDED_BY(mu_) = false;
  Status verdict_ ABSL_GUARDED_BY(mu_);
  std::jthread watcher_;  // behind what it uses
};

/// What `train` returns; or why it was ended.
Status TrainWithAll(Server& server, const ServerOptions& options,
                    const std::function<Status(Server& server)>& train) {
  ComingWatch watch(server, options);
  const Status trained = train(server);
  if (trained.ok()) return trained;
  const Status verdict = watch.verdict();
  return verdict.ok() ? trained : verdict;
}

std::atomic<int> descriptions_wanted{0};

/// While it lives, SIGUSR1 makes a replica say what its server is doing, and SIGINT or SIGTERM end
/// a parameter server when its workers have ended: they need it for their last checkpoint. Handlers
/// may do next to nothing, so that a thread looks at what they have noted.
class ReplicaSignals {
 public:
  ReplicaSignals(Server& server, const ServerOptions& options)
      : server_(server), options_(options) {
    struct sigaction action = {};
    action.sa_handler = [](int) { ++descriptions_wanted; };
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, &before_);
    if (RoleOfJob(options.job) == TaskRole::kParameterServer) stop_.emplace();
    watcher_ = std::jthread([this](const std::stop_token& end) {
      while (!end.stop_requested()) {
        options_.clock->SleepFor(kSignalPause);
        if (descriptions_wanted.exchange(0) > 0) Notice(options_, server_.Describe());
        if (stop_ && !told_ && StopSignal::received() != 0) End(StopSignal::received());
      }
    });
  }
  ~ReplicaSignals() {
    watcher_.request_stop();
    watcher_.join();
    sigaction(SIGUSR1, &before_, nullptr);
  }

 private:
  void End(int signal) {
    told_ = true;
    if (!server_.ExpectEnd(kWorkerJob)) StopSignal::DoAsBefore(signal);
    Notice(options_, StrCat(signal == SIGINT ? "SIGINT" : "SIGTERM",
                            ": ending when the workers have ended; a second one ends at once"));
  }

  Server& server_;
  const ServerOptions& options_;
  struct sigaction before_ = {};
  std::optional<StopSignal> stop_;
  bool told_ = false;
  std::jthread watcher_;
};

}  // namespace

Status RunReplica(const ServerOptions& options, const OpRegistry& registry,
                  const std::function<Status(Server& server)>& train) {
  const Clock::Time begin = options.clock->Now();
  auto started = Server::Start(options, registry);
  if (!started.ok()) {
    if (RoleOfJob(options.job) == TaskRole::kWorker) {
      // All tasks may have been started at once.
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          begin + options.start_up_deadline - options.clock->Now());
      ReportFailedStart(options, kParameterServerJob, started.status(),
                        std::clamp(left, std::chrono::milliseconds(0), kServersWait));
    }
    return started.status();
  }
  const std::unique_ptr<Server> server = *std::move(started);
  const ReplicaSignals signals(*server, options);
  if (RoleOfJob(options.job) == TaskRole::kParameterServer) {
    std::string addresses;
    for (int task = 0; task < options.cluster.NumTasks(kWorkerJob); ++task) {
      TENON_ASSIGN_OR_RETURN(const std::string address, options.cluster.Address(kWorkerJob, task));
      StrAppend(&addresses, task == 0 ? "" : ",", address);
    }
    Notice(options, StrCat("waiting for the workers at ", addresses, " to end"));
    const Status end =
        server->WaitForJobEnd(kWorkerJob, {kWorkerTimeout, options.start_up_deadline});
    // The others would look for this server, and wait.
    const bool was_told_to = end.code() == StatusCode::kCancelled;
    if (!end.ok() && !was_told_to) server->EndTasks(kWorkerJob, end);
    return end;
  }
  const Status status = TrainWithAll(*server, options, train);
  const int signal = StopSignal::last_received();
  const bool interrupted = signal != 0 && (status.ok() || status.code() == StatusCode::kCancelled);
  if (!status.ok() && interrupted) {
    Notice(options, OneLine(Message(status)));
  } else if (!status.ok() && options.cluster.NumTasks(kParameterServerJob) > 0) {
    Notice(options,
           StrCat("this worker failed, which the parameter servers are told: ",
                  absl::StatusCodeToString(status.code()), ": ", OneLine(Message(status))));
  }
  Status end = WithMessage(status, OneLine(Message(status)));
  if (interrupted) {
    end = Cancelled("ended by signal ", signal);
  } else if (status.code() == StatusCode::kCancelled) {
    end = Aborted(Message(end));  // by its server's end, say: a failure of this worker
  }
  server->ReportEnd(kParameterServerJob, end);
  if (!status.ok() && interrupted) {
    std::fflush(nullptr);
    StopSignal::DoAsBefore(signal);
  }
  return status;
}

Status WaitForOtherWorkers(Server& server, const std::function<StatusOr<int64_t>()>& step,
                           const std::function<void(const std::string& line)>& notice,
                           std::chrono::milliseconds patience, Clock& clock) {
  const DeviceName own = *DeviceName::Parse(server.task());
  const Clock::Time begin = clock.Now();
  Clock::Time next_notice = begin + kNoticePause, progress = begin;
  int64_t last = -1;
  EndedTasks ended(clock);
  while (StopSignal::received() == 0) {
    std::string awaited;
    for (int task = 0; task < server.cluster().NumTasks(kWorkerJob); ++task) {
      if (own.job == kWorkerJob && *own.task == task) continue;
      if (ended.HasEnded(task, [&] { return server.AskIfAlive(kWorkerJob, task); })) continue;
      TENON_ASSIGN_OR_RETURN(const std::string address, server.cluster().Address(kWorkerJob, task));
      StrAppend(&awaited, awaited.empty() ? "" : ", ", TaskName(kWorkerJob, task), " at ", address);
    }
    if (awaited.empty()) break;
    TENON_ASSIGN_OR_RETURN(const int64_t now_at, step());
    const Clock::Time now = clock.Now();
    if (std::exchange(last, now_at) != now_at) progress = now;
    if (now - progress >= patience) {
      if (notice) {
        notice(StrCat("not waiting any longer for ", awaited, ", which made no step for ",
                      patience.count() / 1000.0, " s"));
      }
      break;
    }
    if (now >= next_notice) {
      next_notice = now + kNoticePause;
      if (notice) {
        notice(StrCat("waiting for the end of ", awaited, ", ",
                      std::chrono::duration_cast<std::chrono::seconds>(now - begin).count(),
                      " s now, at step ", now_at));
      }
    }
    clock.SleepFor(kAlivePause);
  }
  return OkStatus();
}

DeviceFunction ReplicaDeviceSetter(const Server& server) {
  const DeviceName own = *DeviceName::Parse(server.task());
  return ReplicaDeviceSetter({.ps_tasks = server.cluster().NumTasks(kParameterServerJob),
                              .worker_device = StrCat("/job:", *own.job, "/task:", *own.task)});
}

}  // namespace tenon
