// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "distributed/protocol/task_role.h"

namespace tenon::tools {

/// A task that is to run: which one of the cluster it is, and the command that it gets.
struct TaskPlan {
  TaskRole role;
  std::string job;  // "worker"
  int index = 0;    // in the job
  std::string address;
  std::vector<std::string> arguments;  // the program first
  std::vector<int> cores;              // those that it may run on; none: all
  std::string host;                    // which ssh is to start it on; none: this machine
  int place = 0;                       // among the tasks of that host
  std::vector<std::string> variables;  // NAME=VALUE, of its environment alone

  std::string name() const;      // "worker 0", "worker 0 (h1)"
  std::string log_name() const;  // "worker-0.log"
};

/// The wishes that a plan is made from.
struct ClusterShape {
  int ps = 1;
  int workers = 1;
  int cpus_per_task = 0;             // 0: all are everybody's
  int gpus_per_task = 0;             // of each worker; 0: all are everybody's
  std::vector<std::string> command;  // which the flags of each task are added to

  std::string ToString() const;  // "1 parameter server and 2 workers"
};

/// Whether a command has the flag "--a_b", in either spelling, with a value after '=' or without.
bool HasFlag(const std::vector<std::string>& command, std::string_view flag);

/// A task for each parameter server and then for each worker, at these addresses.
/// REQUIRES: there are as many.
std::vector<TaskPlan> TasksAt(const std::vector<std::string>& addresses, const ClusterShape& shape);

/// A task for each parameter server and then for each worker, at free ports of loopback. Cores go
/// round: those of the last task may be those of the first ones. REQUIRES: there are as many cores
/// as a task is to have.
StatusOr<std::vector<TaskPlan>> PlanTasks(const ClusterShape& shape, const std::vector<int>& cores);

/// Has each worker see so many GPUs of its host and no other, the first ones first, and each
/// parameter server none. `visible` are those of this machine by their names for CUDA; elsewhere
/// they are counted from 0. REQUIRES: there are enough here.
void DealGpus(int gpus_per_task, const std::vector<std::string>& visible,
              std::vector<TaskPlan>* plans);

/// "0,1", as taskset has them.
std::string CoreList(const std::vector<int>& cores);

/// A word that a shell takes for `text`, which has no zero byte.
std::string ShellWord(std::string_view text);
/// Such words with blanks between them.
std::string ShellWords(const std::vector<std::string>& texts);

/// A line for a shell that runs the task alone, with additions to its environment.
std::string ShellLine(const TaskPlan& task, const std::vector<std::string>& environment);

}  // namespace tenon::tools
