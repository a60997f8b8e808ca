// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/slurm_launcher.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <optional>
#include <utility>

#include "core/base/strings.h"
#include "data/files/file.h"
#include "data/files/path.h"
#include "distributed/protocol/task_role.h"
#include "distributed/resolver/environment.h"
#include "distributed/resolver/ranked_tasks.h"
#include "tools/commands.h"
#include "tools/launch/job_token.h"
#include "tools/launch/received_signals.h"

namespace tenon::tools {
namespace {

constexpr size_t kPieceOfSrun = 16384;
constexpr size_t kLongestLineOfSrun = 1 << 20;
constexpr size_t kErrorsOfSrun = 10;
/// How long the other tasks get to end by themselves when one has failed.
constexpr std::chrono::seconds kGraceOfOthers{10};
/// The code of a child whose program cannot be run (StartChild).
constexpr int kNoProgram = 127;

/// The rank before a line of srun --label, "3: text", whose numbers are aligned; what follows it
/// becomes `line`.
std::optional<size_t> TakeLabel(std::string_view* line) {
  std::string_view text = *line;
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  size_t rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (!text.starts_with(':')) return std::nullopt;
  text.remove_prefix(text.starts_with(": ") ? 2 : 1);
  *line = text;
  return rank;
}

Status CheckIsNoTask() {
  TENON_ASSIGN_OR_RETURN(const std::optional<RankedTasks> ranks,
                         FindRankedTasks(Environment::OfProcess()));
  if (!ranks) return OkStatus();
  const std::string of_all = ranks->size > 0 ? StrCat("one of ", ranks->size, " tasks") : "a task";
  return FailedPrecondition("this process is itself ", of_all, " that ", ranks->launcher,
                            " has started (", ranks->rank_source,
                            "): tenon launch --slurm is started once, in the shell of salloc, a "
                            "batch script or on the login node");
}

}  // namespace

SlurmLauncher::SlurmLauncher(SlurmLauncherOptions options) : options_(std::move(options)) {}

Status SlurmLauncher::Run(const SlurmJob& job) {
  TENON_RETURN_IF_ERROR(CheckIsNoTask());
  TENON_RETURN_IF_ERROR(AddTasks(job));
  ChildOptions options;
  options.take_errors = true;
  options.own_group = true;
  options.environment = job.environment;
  TENON_ASSIGN_OR_RETURN(const std::vector<std::string> token,
                         JobTokenVariables(job.shape.command));
  options.environment.insert(options.environment.end(), token.begin(), token.end());
  TENON_ASSIGN_OR_RETURN(Child srun, StartChild(SrunCommand(job), options));
  Wait(&srun);
  int status = 0;
  while (waitpid(srun.pid, &status, 0) < 0 && errno == EINTR) {
    if (ReceivedSignals() > handed_on_) HandOn(srun.pid);
  }
  screen_.Finish();
  return Outcome(status);
}

Status SlurmLauncher::AddTasks(const SlurmJob& job) {
  const bool has_logs = !options_.log_dir.empty();
  if (has_logs) TENON_RETURN_IF_ERROR(MakeFolders(options_.log_dir));
  for (int rank = 0; rank < job.num_tasks(); ++rank) {
    const bool is_server = rank < job.shape.ps;
    TaskPlan plan;
    plan.job = is_server ? kParameterServerJob : kWorkerJob;
    plan.index = is_server ? rank : rank - job.shape.ps;
    tasks_.push_back(std::make_unique<TaskOutput>(
        plan.name(), has_logs ? JoinPath(options_.log_dir, plan.log_name()) : "",
        options_.is_printed, &screen_));
    TENON_RETURN_IF_ERROR(tasks_.back()->OpenLog());
  }
  return OkStatus();
}

/// Until srun has closed its output.
void SlurmLauncher::Wait(Child* srun) {
  for (bool is_open = true; is_open;) {
    if (ReceivedSignals() > handed_on_) HandOn(srun->pid);
    if (TakeSuspension()) raise(SIGSTOP);
    if (screen_.is_broken() && !std::exchange(is_asked_to_end_, true)) kill(srun->pid, SIGINT);
    const bool is_late =
        failed_at_ && std::chrono::steady_clock::now() - *failed_at_ > kGraceOfOthers;
    if (is_late && !std::exchange(is_asked_to_end_, true)) {
      screen_.Print("a task has failed: the others are ended");
      kill(srun->pid, SIGTERM);
    }
    std::vector<pollfd> fds;
    // A screen that takes nothing holds up those that print.
    if (!screen_.is_full()) fds.push_back({srun->output, POLLIN, 0});
    if (screen_.has_pending()) fds.push_back({STDOUT_FILENO, POLLOUT, 0});
    if (poll(fds.data(), fds.size(), 100) > 0 && fds[0].fd == srun->output && fds[0].revents != 0) {
      is_open = ReadPiece(srun->output);
    }
    screen_.WriteSome();
    screen_.ShowState(tasks_have_begun_ ? StrCat("srun runs ", tasks_.size(), " tasks")
                                        : "srun has started no task yet");
  }
  close(std::exchange(srun->output, -1));
  if (!rest_.empty()) TakeLine(rest_);
}

bool SlurmLauncher::ReadPiece(int pipe) {
  char piece[kPieceOfSrun];
  const ssize_t n = read(pipe, piece, sizeof(piece));
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  rest_.append(piece, static_cast<size_t>(n));
  size_t begin = 0;
  for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    TakeLine(std::string_view(rest_).substr(begin, end - begin));
  }
  rest_.erase(0, begin);
  if (rest_.size() > kLongestLineOfSrun) TakeLine(std::exchange(rest_, ""));
  return n > 0;
}

void SlurmLauncher::TakeLine(std::string_view line) {
  std::string_view text = line;
  const std::optional<size_t> rank = TakeLabel(&text);
  if (!rank || *rank >= tasks_.size()) return TakeWordOfSrun(line);
  tasks_have_begun_ = true;
  tasks_[*rank]->Take(StrCat(text, "\n"));
}

/// What keeps the tasks from starting is the error of this command, and said once.
void SlurmLauncher::TakeWordOfSrun(std::string_view line) {
  constexpr std::string_view kError = "srun: error: ", kFatal = "srun: fatal: ";
  static_assert(kError.size() == kFatal.size());
  const bool is_error = line.starts_with(kError) || line.starts_with(kFatal);
  if (is_error) {
    if (errors_.size() == kErrorsOfSrun) errors_.pop_front();
    errors_.emplace_back(line.substr(kError.size()));
    const bool is_failure = line.find(": Exited with exit code ") != std::string_view::npos;
    if (is_failure && !failed_at_) failed_at_ = std::chrono::steady_clock::now();
  }
  if (!is_error || tasks_have_begun_) screen_.Print(line);
}

void SlurmLauncher::HandOn(pid_t srun) {
  const bool is_first = !std::exchange(is_asked_to_end_, true);
  handed_on_ = ReceivedSignals();
  screen_.Print(is_first ? "waiting for the tasks to end; a second signal ends them at once"
                         : "the tasks are ended");
  screen_.WriteSome();
  // SIGINT goes to the tasks; at SIGTERM srun kills them.
  kill(srun, is_first && handed_on_ == 1 ? SIGINT : SIGTERM);
}

Status SlurmLauncher::Outcome(int status) {
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : SignalCode(WTERMSIG(status));
  if (!screen_.status().ok()) return screen_.status();
  if (handed_on_ > 0) return OkStatus();
  for (const int signal : {SIGINT, SIGTERM}) {
    if (code == SignalCode(signal) && !failed_at_) left_by_ = signal;
  }
  if (code == kNoProgram && !tasks_have_begun_) {
    return NotFound("srun cannot be run: Slurm's programs are not on this machine, or not on PATH");
  }
  if (code == 0 || left_by_ != 0) {
    for (const auto& task : tasks_) TENON_RETURN_IF_ERROR(task->log_status());
    return OkStatus();
  }
  const std::string said = errors_.empty() ? "" : StrCat(": ", Join(errors_, "\n  "));
  const std::string where =
      options_.log_dir.empty() ? "" : StrCat("; what tasks print is in ", options_.log_dir);
  return Aborted("srun ended with exit code ", code, where, said);
}

}  // namespace tenon::tools
