// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "tools/launch/screen.h"
#include "tools/launch/slurm_command.h"
#include "tools/launch/task_output.h"
#include "tools/processes.h"

namespace tenon::tools {

struct SlurmLauncherOptions {
  std::string log_dir;     // with a file of each task's output; none: no files
  bool is_printed = true;  // what tasks print, line by line
};

/// Runs the tasks of a job by srun to their end, which is that of the job, too. The first signal
/// that this process gets ends the tasks in good order, or the job's waiting in the queue; the
/// second one ends all at once. When a task has failed, the others get 10 s to end, and are ended
/// then; who is killed by a signal is left to the others to miss. Not thread-safe; one in a
/// process, after CatchSignals().
class SlurmLauncher {
 public:
  explicit SlurmLauncher(SlurmLauncherOptions options);

  /// Starts srun and waits for its end. NotFound where there is no srun; FailedPrecondition within
  /// a task of Slurm; else Aborted with what srun has said.
  Status Run(const SlurmJob& job);
  /// The signal that has ended tasks in good order while this process had none; or 0.
  int left_by() const { return left_by_; }

 private:
  Status AddTasks(const SlurmJob& job);
  void Wait(Child* srun);
  bool ReadPiece(int pipe);
  void TakeLine(std::string_view line);
  void TakeWordOfSrun(std::string_view line);
  void HandOn(pid_t srun);
  Status Outcome(int status);

  const SlurmLauncherOptions options_;
  Screen screen_;
  std::vector<std::unique_ptr<TaskOutput>> tasks_;  // by rank
  std::string rest_;                                // of the output, since the last newline
  std::deque<std::string> errors_;                  // the last ones that srun has told
  bool tasks_have_begun_ = false;
  bool is_asked_to_end_ = false;
  int handed_on_ = 0;                                               // signals
  std::optional<std::chrono::steady_clock::time_point> failed_at_;  // the first task
  int left_by_ = 0;
};

}  // namespace tenon::tools
