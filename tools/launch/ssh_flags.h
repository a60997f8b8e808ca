// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "tools/launch/ssh_command.h"
#include "tools/launch/task_plan.h"

namespace tenon::tools {

/// The flags of a launch on other hosts.
struct SshFlags {
  std::string hosts, host_file;
  std::optional<std::string> ssh;
  int first_port = 0;  // 0: drawn
  /// The flag that says how many workers there are.
  const CLI::Option* workers = nullptr;

  /// --hosts, --hostfile, --ssh and --first_port.
  void AddTo(CLI::App& launch);
  bool is_given() const { return !hosts.empty() || !host_file.empty(); }
  /// Wrong usage for flags that need hosts and have none.
  Status Check() const;

  /// Which host gets which task; where the user does not say how many workers, as many as there are
  /// slots.
  StatusOr<std::vector<TaskPlan>> Plan(ClusterShape shape) const;
  /// How tasks are started in this process's folder. Wrong usage for --ssh without a program.
  StatusOr<SshOptions> Options(const ClusterShape& shape) const;
};

/// All variables that tasks elsewhere get: those of this process that they need, a token of the job
/// unless its command says who may call, and a user's, "NAME=VALUE", in that order; the last one of
/// a name counts. Wrong usage for a name that no shell exports.
StatusOr<std::vector<std::string>> VariablesElsewhere(const std::vector<std::string>& command,
                                                      const std::vector<std::string>& own);

/// Prints the commands of the plan as one writes them in a shell.
void PrintSshLines(const std::vector<TaskPlan>& plans, const SshOptions& options,
                   const std::vector<std::string>& environment);

}  // namespace tenon::tools
