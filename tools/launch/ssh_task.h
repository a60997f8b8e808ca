// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "tools/launch/ssh_command.h"
#include "tools/launch/task_plan.h"

namespace tenon::tools {

/// A task on another host, as seen from the ssh process that has started it: the task's own process
/// is there as long as that one says so. When the input of ssh ends, as it does with this process,
/// the task's processes are ended. Not thread-safe; Progress() is to be called often, and whenever
/// there is something to read at control().
class SshTask {
 public:
  explicit SshTask(std::string host) : host_(std::move(host)) {}
  ~SshTask();
  SshTask(const SshTask&) = delete;
  SshTask& operator=(const SshTask&) = delete;

  /// Starts ssh, in a process group of its own; once. `variables` are the task's, "NAME=VALUE".
  Status Start(const TaskPlan& task, const SshOptions& options,
               const std::vector<std::string>& variables);

  pid_t pid() const { return pid_; }  // of ssh
  /// The end of a pipe that brings what the task prints, for the caller to close.
  int output() const { return output_; }
  /// What the other host says; -1 when it says no more.
  int control() const { return control_; }

  /// Takes what is there and writes what can be written. `is_read`: what the task prints is taken
  /// from output() just now, so that ssh has no reason to wait.
  void Progress(bool is_read);
  /// To be called when ssh has ended, before its number is given to another process.
  void HandleExit();

  /// Whether the task has been started there, and its number and cores ("" for all).
  bool is_connected() const { return !process_.empty(); }
  const std::string& process() const { return process_; }
  const std::string& cores() const { return cores_; }
  /// How the task's first process has ended, as waitpid() has it. An exit code of 128 and a
  /// signal's number counts as that signal, but for those of an end in good order.
  const std::optional<int>& end() const { return end_; }

  /// Sends a signal to all processes of the task. Where there are none yet, ssh itself gets it.
  void Signal(int number);

  /// Why ssh has ended before the task.
  Status WhyLost() const;

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  void Send(std::string_view line);
  void Flush();
  void ReadControl();
  void TakeLine(std::string_view line);
  void KillSsh(int number);

  const std::string host_;
  pid_t pid_ = -1;  // -1 when it has ended, too
  int input_ = -1, output_ = -1, control_ = -1;
  std::string unwritten_;            // to the input
  std::string unread_;               // of control: a line without its end
  std::string process_, cores_;      // of the task
  std::deque<std::string> remarks_;  // what ssh and shells have said, the last lines of it
  std::string refusal_;
  std::optional<int> end_;
  bool is_late_ = false;
  SteadyTime deadline_, next_beat_, next_poll_;
  std::optional<SteadyTime> kill_at_;  // ssh, which may be stuck
  bool is_gone_ = false;               // the task, with all its processes
};

}  // namespace tenon::tools
