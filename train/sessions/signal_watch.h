// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "core/base/status.h"
#include "runtime/device/machine.h"

namespace tenon {

class Server;

/// Says what a training waits for after its first SIGINT or SIGTERM, again after every `limit`, and
/// bounds how long a task of a cluster works on, where the tasks that it works with hang: it asks
/// them whether they live, and after `limit`
///   - ends the process by the signal, with a line that says why nothing is saved, when one of them
///     does not answer;
///   - gives up what can be given up, when all do: a step that takes long.
/// What may not be given up, such as a checkpoint that is being written, or a step of a session
/// whose variables would go with it, has its time as long as all tasks answer. Where there is no
/// thread to watch with, it says so, and does nothing else. Thread-safe.
class SignalWatch {
 public:
  struct Options {
    /// The server of the cluster the task works with; must outlive it. Null: no other tasks.
    Server* server = nullptr;
    /// Gets lines for people, from a thread; when null, the standard error does.
    std::function<void(const std::string& line)> notice = {};
    /// Where checkpoints are; empty: nowhere.
    std::string checkpoint_dir = {};
    std::chrono::milliseconds limit{5000};
    /// The clock by which it waits, and what it starts threads by; must outlive it.
    Clock* clock = &MachineClock();
    ThreadStarter* threads = &MachineThreads();
  };

  explicit SignalWatch(Options options);
  ~SignalWatch();

  /// While it lives, the process is at `what`, of which `give_up` ends the wait; it is called at
  /// most once, from a thread, and has returned when the Work goes. Null: it may not be given up.
  class Work {
   public:
    /// `watch` may be null: nobody watches.
    Work(SignalWatch* watch, std::string what, std::function<void()> give_up = {});
    ~Work() { End(); }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    /// Ends it now. Whether it was given up.
    bool End();

   private:
    SignalWatch* watch_;  // null when it has ended
  };

 private:
  void Watch();
  void Say(const std::string& line) const;
  /// Asks the tasks of the other jobs: "/job:ps/replica:0/task:0 at HOST:PORT", of those that do
  /// not answer. Blocks for some seconds at most.
  std::string Silent() const;
  std::string LeftBehind() const;
  /// Whether it is still the work of that number.
  bool IsAt(int64_t number) const;
  bool IsToEnd() const;

  const Options options_;
  mutable Mutex mu_;
  CondVar changed_;
  int64_t work_ ABSL_GUARDED_BY(mu_) = 0;  // counts them
  bool working_ ABSL_GUARDED_BY(mu_) = false;
  bool giving_up_ ABSL_GUARDED_BY(mu_) = false;
  bool given_up_ ABSL_GUARDED_BY(mu_) = false;
  std::string what_ ABSL_GUARDED_BY(mu_);
  std::function<void()> give_up_ ABSL_GUARDED_BY(mu_);
  bool end_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<ThreadStarter::Work> watcher_;
};

}  // namespace tenon
