// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "distributed/protocol/cluster_spec.h"
#include "distributed/protocol/job_patience.h"

namespace tenon {

/// Which tasks have reported that they ended, and how; what a parameter server waits for. It knows
/// no transport, and starts no thread. Thread-safe.
class JobEnd {
 public:
  /// Finds out whether a task lives: `done` is called once, from any thread, perhaps inside, while
  /// the JobEnd lives. OK when it has answered, Unavailable when there is no connection to it,
  /// another error when it does not answer in time.
  using Probe = std::function<void(const std::string& job, int task,
                                   std::function<void(const Status& life)> done)>;
  /// Gets a line for people when something is waited for.
  using Notice = std::function<void(const std::string& line)>;

  /// One wait for the end of a job.
  class Watch {
   public:
    Watch(std::string job, const JobPatience& patience, Clock::Time now);
    /// When to look again, though nothing changes.
    Clock::Time next() const { return next_; }

   private:
    friend class JobEnd;
    const std::string job_;
    const JobPatience patience_;
    const std::chrono::milliseconds pause_;  // between two looks
    Clock::Time begin_, next_, next_notice_;
    int64_t seen_ = 0;  // of the changes
  };

  /// `clock` must outlive it.
  JobEnd(ClusterSpec cluster, Clock& clock, Probe probe, Notice notice = nullptr)
      : cluster_(std::move(cluster)),
        clock_(clock),
        probe_(std::move(probe)),
        notice_(std::move(notice)) {}

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
  /// See Server::WaitForJobEnd. Blocks.
  Status Wait(const std::string& job, const JobPatience& patience);
  /// What Wait does each time, for those who may not block: the result when the wait is over; else
  /// tasks have been asked for signs of life and people told what is due, and there is to be
  /// another look at the watch's next(), or as soon as something has changed (changes). The cluster
  /// must have the job.
  std::optional<Status> Look(Watch& watch);
  /// A number that grows with every change that a Look may see.
  int64_t changes() const;
  /// Makes every Wait return Cancelled.
  void Stop();

  /// "/job:worker/replica:0/task:0" and so on.
  std::vector<std::string> Ended() const;
  /// The tasks of the jobs that are, or were, waited for, of which nobody has heard yet: each with
  /// its address, and why it does not answer.
  std::vector<std::string> Awaited() const;
  /// The tasks of `job` that have not reported their end, and whether each has been heard of.
  std::map<int, bool> NotEnded(const std::string& job) const;

 private:
  using Task = std::pair<std::string, int>;
  struct End {
    Status status;
    Clock::Time at;
    int64_t incarnation = 0;  // of the process that reported it; 0: not known
    bool interrupted() const { return status.code() == StatusCode::kCancelled; }
  };
  struct Sign {
    Clock::Time at;
    int64_t incarnation = 0;  // 0: not known
  };
  /// A task that was heard of, and to which there is no connection any more.
  struct Gone {
    Clock::Time since;
    std::string why;
  };

  /// What a wait has to return, when it is time.
  std::optional<Status> Verdict(const Watch& watch) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// The time of the watch's next look has come: sets the one after it.
  void SetNextLook(Watch& watch, Clock::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    ++changes_;
    changed_.NotifyAll();
  }
  /// Names those of `job` that nobody has heard of yet, that are gone, or that may return, with the
  /// reason, for a notice; empty when there are none.
  std::string NamesToWaitFor(const std::string& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// The task, its address, and why it does not answer, where that is known.
  std::string NamedWithReason(const Task& task) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// The tasks of `job` that have not ended and are not being probed; now they are.
  std::vector<int> BeginProbes(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndProbe(const Task& task, const Status& life);
  std::string Named(const Task& task) const;
  void Tell(const std::string& line) const {
    if (notice_ && !line.empty()) notice_(line);
  }

  const ClusterSpec cluster_;
  Clock& clock_;
  const Probe probe_;
  const Notice notice_;
  mutable Mutex mu_;
  CondVar changed_;
  int64_t changes_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool is_to_end_ ABSL_GUARDED_BY(mu_) = false;
  std::map<Task, End> ended_ ABSL_GUARDED_BY(mu_);
  std::set<Task> probed_ ABSL_GUARDED_BY(mu_);
  /// When a task was last heard of; by job, any of its tasks.
  std::map<Task, Sign> alive_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Clock::Time> any_alive_ ABSL_GUARDED_BY(mu_);
  std::map<Task, Gone> gone_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> waited_for_ ABSL_GUARDED_BY(mu_);  // jobs
  /// Why those do not answer that nobody has heard of.
  std::map<Task, std::string> silent_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
