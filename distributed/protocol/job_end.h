// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/status.h"
#include "distributed/protocol/cluster_spec.h"

namespace tenon {

/// Which tasks have reported that they ended, and how; what a parameter server waits for.
/// Thread-safe.
class JobEnd {
 public:
  /// Finds out whether a task lives: `done` is called once, from any thread, perhaps inside, while
  /// the JobEnd lives. OK when it has answered, Unavailable when there is no connection to it,
  /// another error when it does not answer in time.
  using Probe = std::function<void(const std::string& job, int task,
                                   std::function<void(const Status& life)> done)>;
  /// Gets a line for people when something is waited for.
  using Notice = std::function<void(const std::string& line)>;

  JobEnd(ClusterSpec cluster, Probe probe, Notice notice = nullptr)
      : cluster_(std::move(cluster)), probe_(std::move(probe)), notice_(std::move(notice)) {}

  /// A task's report: OK when it ended well, Cancelled when a signal has ended it, which may be
  /// started again; another error when it failed. InvalidArgument when the cluster has no such
  /// task. The first report of a task counts, until Heard takes it back.
  Status Report(const std::string& job, int task, const Status& end);
  /// The task of that name has opened a session here, or kept one, so it lives; other names are
  /// ignored. `incarnation` is that of its process: another one than reported its end takes the
  /// report back, unless that was of a failure.
  void Heard(const std::string& task, int64_t incarnation);
  /// The job is to end: a task that a signal has ended, with a report or without, is not expected
  /// back. Whether a task of `job` lives.
  bool ExpectEnd(const std::string& job);
  /// See Server::WaitForJobEnd.
  Status Wait(const std::string& job, std::chrono::milliseconds limit);
  /// Makes every Wait return Cancelled.
  void Stop();

  /// "/job:worker/replica:0/task:0" and so on.
  std::vector<std::string> Ended() const;
  /// The tasks of `job` that have not reported their end, and whether each has been heard of.
  std::map<int, bool> NotEnded(const std::string& job) const;

 private:
  using Clock = std::chrono::steady_clock;
  using Task = std::pair<std::string, int>;
  struct End {
    Status status;
    Clock::time_point at;
    int64_t incarnation = 0;  // of the process that reported it; 0: not known
    bool interrupted() const { return status.code() == StatusCode::kCancelled; }
  };
  struct Sign {
    Clock::time_point at;
    int64_t incarnation = 0;  // 0: not known
  };
  /// A task that was heard of, and to which there is no connection any more.
  struct Gone {
    Clock::time_point since;
    std::string why;
  };

  /// What a Wait that began then has to return, when it is time.
  std::optional<Status> Verdict(const std::string& job, std::chrono::milliseconds limit,
                                Clock::time_point begin) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Names those of `job` that nobody has heard of yet, that are gone, or that may return, with the
  /// reason, for a notice; empty when there are none.
  std::string Awaited(const std::string& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// The tasks of `job` that have not ended and are not being probed; now they are.
  std::vector<int> BeginProbes(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndProbe(const Task& task, const Status& life);
  std::string Named(const Task& task) const;
  void Tell(const std::string& line) const {
    if (notice_ && !line.empty()) notice_(line);
  }

  const ClusterSpec cluster_;
  const Probe probe_;
  const Notice notice_;
  mutable Mutex mu_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool is_to_end_ ABSL_GUARDED_BY(mu_) = false;
  std::map<Task, End> ended_ ABSL_GUARDED_BY(mu_);
  std::set<Task> probed_ ABSL_GUARDED_BY(mu_);
  /// When a task was last heard of; by job, any of its tasks.
  std::map<Task, Sign> alive_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Clock::time_point> any_alive_ ABSL_GUARDED_BY(mu_);
  std::map<Task, Gone> gone_ ABSL_GUARDED_BY(mu_);
  /// Why those do not answer that nobody has heard of.
  std::map<Task, std::string> silent_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
