// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "core/base/status.h"
#include "tools/launch/task_plan.h"

// How Slurm is asked for the tasks of a cluster: one step of srun, whose first processes are the
// parameter servers. Who they are, and where the others are, tasks find out by Slurm's variables.

namespace tenon::tools {

struct SlurmFlags {
  bool slurm = false;
  bool print_slurm = false;
  int nodes = 0;                    // 0: as Slurm places the tasks
  std::vector<std::string> values;  // of --slurm_args, as they were given

  /// --slurm, --print_slurm, --nodes and --slurm_args.
  void AddTo(CLI::App& launch);
};

/// What Slurm is asked for.
struct SlurmJob {
  ClusterShape shape;
  int nodes = 0;
  std::vector<std::string> arguments;    // the user's own, for srun or sbatch
  std::vector<std::string> environment;  // "NAME=VALUE"

  int num_tasks() const { return shape.ps + shape.workers; }
};

/// The words in the values of --slurm_args, which blanks separate, unless quotes keep them
/// together, for srun or for a script of sbatch. WrongUsage for what the job itself says: how many
/// tasks there are, and, of srun, how their output comes.
StatusOr<std::vector<std::string>> SlurmArguments(const std::vector<std::string>& values,
                                                  bool for_script);

/// The command that runs the tasks and ends with them: within an allocation as a step of it,
/// elsewhere as a job of its own. Each line of output has the number of its task before it.
std::vector<std::string> SrunCommand(const SlurmJob& job);

/// A line for a shell that does the same.
std::string SrunLine(const SlurmJob& job);

/// The script for sbatch that does the same.
std::string SbatchScript(const SlurmJob& job);

}  // namespace tenon::tools
