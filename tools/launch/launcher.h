// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "tools/launch/screen.h"
#include "tools/launch/ssh_command.h"
#include "tools/launch/ssh_task.h"
#include "tools/launch/task_output.h"
#include "tools/launch/task_plan.h"

namespace tenon::tools {

struct LauncherOptions {
  int max_restarts = 0;                  // of all tasks together
  std::vector<std::string> environment;  // "NAME=VALUE", for all tasks
  std::string log_dir;                   // with a file of each task's output; none: no files
  bool is_printed = true;                // what tasks print, line by line
  SshOptions ssh;                        // for tasks of other hosts
};

/// Runs the tasks of a cluster to their end, here or on other hosts: each in a process group of its
/// own, which gets the signals that this process gets, and of which nothing is left in the end. Not
/// thread-safe; one in a process, which has no other children, after CatchSignals().
class Launcher {
 public:
  explicit Launcher(LauncherOptions options);

  /// Starts the tasks and waits for all. The first one that fails is the cause of what happens to
  /// the others; the error has its last lines.
  Status Run(const std::vector<TaskPlan>& plans);
  /// The signal that has ended a task in good order while this process had none; or 0.
  int left_by() const { return left_by_; }

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  /// A task and its process, whose number is that of its group, too; on another host the process
  /// that runs here is ssh, which is there as long as a process of the task is.
  struct Task {
    TaskPlan plan;
    std::string name;
    std::unique_ptr<TaskOutput> output;
    pid_t pid = -1;
    bool waits = false;      // to be started
    bool is_again = false;   // it has run before
    bool running = false;    // the process itself
    bool has_group = false;  // a process of its group may be there
    bool is_said = false;    // that it has started
    std::unique_ptr<SshTask> remote;
  };

  Status AddTasks(const std::vector<TaskPlan>& plans);
  /// Starts tasks that wait, of another host no more at once than it takes.
  Status StartWaiting();
  Status StartProcess(Task* task);
  Status StartRemote(Task* task);
  void SayStarted(Task* task);
  /// Until nothing is left of any task.
  void Wait();

  static bool Begins(const Task& task);
  void PollOutput();
  void Reap();
  /// Follows what the other host says of the task.
  void Follow(Task* task);
  void HandleLoss(Task* task);
  void HandleEnd(Task* task, int status);
  void StartAgain(Task* task);
  void Fail(Task* task, Status cause);

  void HandOn();
  void Suspend();
  void EndOthers();
  void EndServers();
  void EndLeftovers();
  /// A signal to all groups; one that is no stronger than the last one is not sent again.
  void EndGroups(int signal);
  void SignalGroups(int signal);
  void SignalGroup(const Task& task, int signal);

  /// Whether a task runs, or waits to.
  bool HasTasks() const;
  int NumRunning() const;
  bool HasGroups() const;
  std::string State() const;
  Status Outcome() const;

  const LauncherOptions options_;
  Screen screen_;
  std::vector<Task> tasks_;
  size_t next_to_read_ = 0;  // of tasks_
  int restarts_left_;
  Status cause_;
  const Task* failed_ = nullptr;
  SteadyTime failed_at_;
  std::optional<SteadyTime> left_over_since_;
  std::string last_end_;  // "worker 3 ended"
  int last_signal_ = 0;   // of EndGroups
  int handed_on_ = 0;     // signals
  int left_by_ = 0;
  bool servers_end_ = false;
  bool leftovers_are_said_ = false;
};

}  // namespace tenon::tools
