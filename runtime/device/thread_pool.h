// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/parallel.h"

namespace tenon {

/// The threads that run the nodes of every step of a process or session. Tasks must not block for
/// long: what waits is an asynchronous kernel. Thread-safe.
///
/// The pool of a server also watches the network: one of its threads waits for events while the
/// others work. When an event makes a task, the thread that has the event's data in its cache runs
/// the task, and another one goes on watching (leader and followers; Schmidt et al.,
/// "Leader/Followers", 2000). What is watched in several ways has such a thread for each.
class ThreadPool {
 public:
  /// Waits for one event and handles it. False when no more will come.
  using Watch = std::function<bool()>;

  /// `num_threads` >= 0; with 0 threads Submit is never to be called: callers run everything
  /// themselves.
  explicit ThreadPool(int num_threads);
  /// Runs what was submitted, then ends the threads. REQUIRES: nothing is watched.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// How many tasks run at once.
  int num_threads() const { return num_threads_; }
  void Submit(std::function<void()> task);
  /// Submits `task` when a thread has nothing to do; false, and `task` untouched, when none has.
  bool SubmitIfFree(std::function<void()>& task);
  /// How many tasks wait for a thread.
  int64_t num_waiting();

  /// Calls `watch` again and again, never twice at once, on a thread that runs no task. Each call
  /// adds a thread to the pool.
  void StartWatching(Watch watch);
  /// Returns when all that is watched has returned false. Not to be called on the pool.
  void WaitUntilWatched();

 private:
  struct Task {
    std::function<void()> run;
    /// While it waits, too: the loop of a kernel leaves the thread that it will run on alone.
    std::unique_ptr<BusyThread> busy;
  };
  struct Watched {
    Watch watch;
    bool busy = false;  // a thread watches
  };
  void Work();
  /// Has a thread run what has been submitted.
  void WakeForTask();
  /// Something that no thread watches; null when each has one.
  Watched* Unwatched() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Watches until this thread has a task to run, or nothing is left to watch.
  void WatchUntilTask(Watched* watched) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int num_threads_;
  Mutex mu_;
  CondVar wake_;
  CondVar all_watched_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mu_);
  int running_ ABSL_GUARDED_BY(mu_) = 0;
  std::list<Watched> watched_ ABSL_GUARDED_BY(mu_);
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
