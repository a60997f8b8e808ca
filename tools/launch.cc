// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <thread>
#include <utility>

#include "distributed/protocol/task_role.h"
#include "tools/commands.h"
#include "tools/processes.h"

namespace tenon::tools {
namespace {

/// How long the other tasks get to end by themselves after one has failed, before and after
/// SIGTERM.
constexpr std::chrono::milliseconds kGrace{3000};

struct LaunchFlags {
  int ps = 1;
  int workers = 1;
  int restarts = 0;
  std::vector<std::string> command;
};

/// One task's process and the pipe that carries its output.
struct Task {
  TaskRole role;
  std::string name;                    // "worker 0"
  std::vector<std::string> arguments;  // the command
  pid_t pid = -1;
  int output = -1;
  std::string line = {};  // what came since the last newline
  bool running = true;
};

void Print(const Task& task, std::string_view line) {
  std::printf("[%s] %.*s\n", task.name.c_str(), static_cast<int>(line.size()), line.data());
  std::fflush(stdout);
}

/// Prints the whole lines that have come; false at the end of the output.
bool ReadOutput(Task* task) {
  char buffer[4096];
  const ssize_t n = read(task->output, buffer, sizeof(buffer));
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (n > 0) task->line.append(buffer, n);
  size_t end;
  while ((end = task->line.find('\n')) != std::string::npos) {
    Print(*task, std::string_view(task->line).substr(0, end));
    task->line.erase(0, end + 1);
  }
  if (n > 0) return true;
  if (!task->line.empty()) Print(*task, task->line);
  close(task->output);
  task->output = -1;
  return false;
}

std::string Outcome(int status) {
  if (WIFSIGNALED(status)) return StrCat("was ended by signal ", WTERMSIG(status));
  return StrCat("ended with exit code ", WEXITSTATUS(status));
}

/// The signal after which a task has ended by itself (see SignalCode); 0 for another end.
int SignalInGoodOrder(int status) {
  for (const int signal : {SIGINT, SIGTERM}) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == SignalCode(signal)) return signal;
  }
  return 0;
}

/// The first SIGINT or SIGTERM of this process, and how many there were. A terminal sends one to
/// the tasks, too, which take two within a second for one.
std::atomic<int> launch_signal{0}, launch_signals{0};

void CatchSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int number) {
    int none = 0;
    launch_signal.compare_exchange_strong(none, number);
    ++launch_signals;
  };
  for (const int number : {SIGINT, SIGTERM}) sigaction(number, &action, nullptr);
}

Status Start(Task* task) {
  TENON_ASSIGN_OR_RETURN(const Child child, StartChild(task->arguments, {.take_errors = true}));
  task->pid = child.pid;
  task->output = child.output;
  return OkStatus();
}

class Launcher {
 public:
  Launcher(std::vector<Task> tasks, int restarts)
      : tasks_(std::move(tasks)), restarts_left_(restarts) {}

  /// Waits for all tasks. The first one that fails is the cause of what happens to the others.
  Status Wait() {
    while (AnyRunning()) {
      PollOutput();
      Reap();
      if (launch_signals > handed_on_) HandOn();
      if (!cause_.ok()) EndOthers();
      if (left_by_ != 0 && cause_.ok()) EndServers();
    }
    return cause_;
  }
  /// The signal that has ended a task in good order while this process had none; or 0.
  int left_by() const { return left_by_; }

 private:
  /// The tasks get a signal that this process has got: workers end with a checkpoint, and parameter
  /// servers, which hold the variables, after them. At the second one everything ends.
  void HandOn() {
    const bool is_first = handed_on_ == 0;
    handed_on_ = launch_signals;
    std::printf(is_first ? "%s: waiting for the tasks to end; a second one ends them at once\n"
                         : "%s: the tasks are ended\n",
                launch_signal == SIGINT ? "SIGINT" : "SIGTERM");
    std::fflush(stdout);
    for (const Task& t : tasks_) {
      if (t.running) kill(t.pid, is_first ? launch_signal.load() : SIGKILL);
    }
  }

  bool AnyRunning() const {
    // What ended tasks have started may hold their output open.
    const bool at_once = launch_signals > 1;
    return std::any_of(tasks_.begin(), tasks_.end(),
                       [&](const Task& t) { return t.running || (t.output >= 0 && !at_once); });
  }

  void PollOutput() {
    std::vector<pollfd> fds;
    std::vector<Task*> owners;
    for (Task& t : tasks_) {
      if (t.output < 0) continue;
      fds.push_back({t.output, POLLIN, 0});
      owners.push_back(&t);
    }
    if (fds.empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return;
    }
    poll(fds.data(), fds.size(), 100);
    for (size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].revents != 0) ReadOutput(owners[i]);
    }
  }

  void Reap() {
    std::vector<Task> again;
    for (Task& t : tasks_) {
      int status = 0;
      if (!t.running || waitpid(t.pid, &status, WNOHANG) != t.pid) continue;
      t.running = false;
      const int signal = SignalInGoodOrder(status);
      const bool was_asked =
          (launch_signals > 0 || servers_end_) && (WIFSIGNALED(status) || signal != 0);
      if (signal != 0 && !was_asked) {
        left_by_ = signal;
        const char* const name = signal == SIGINT ? "SIGINT" : "SIGTERM";
        Print(t, StrCat("ended by ", name, "; the others go on"));
      } else if (WIFSIGNALED(status) && cause_.ok() && !was_asked && restarts_left_ > 0) {
        --restarts_left_;
        Print(t, Outcome(status));
        // The rest of its output still comes from the old pipe.
        again.push_back({t.role, t.name, t.arguments});
      } else if (status != 0 && cause_.ok() && !was_asked) {
        cause_ = Aborted(t.name, " ", Outcome(status), "; the other tasks are ended");
        failed_at_ = std::chrono::steady_clock::now();
      }
    }
    for (Task& t : again) {
      const Status started = Start(&t);
      if (started.ok()) {
        Print(t, StrCat("started again, process ", t.pid));
        tasks_.push_back(std::move(t));
      } else {
        cause_ = Annotate(started, StrCat(t.name, " cannot be started again"));
        failed_at_ = std::chrono::steady_clock::now();
      }
    }
  }

  /// Parameter servers would wait for the return of a worker that nobody here starts again.
  void EndServers() {
    const bool has_workers = std::any_of(tasks_.begin(), tasks_.end(), [](const Task& t) {
      return t.running && t.role != TaskRole::kParameterServer;
    });
    if (has_workers || std::exchange(servers_end_, true)) return;
    for (const Task& t : tasks_) {
      if (t.running) kill(t.pid, SIGTERM);
    }
  }

  void EndOthers() {
    const auto since = std::chrono::steady_clock::now() - failed_at_;
    const int signal = since > 2 * kGrace ? SIGKILL : since > kGrace ? SIGTERM : 0;
    if (signal == 0 || signal == last_signal_) return;
    last_signal_ = signal;
    for (const Task& t : tasks_) {
      if (t.running) kill(t.pid, signal);
    }
  }

  std::vector<Task> tasks_;
  int restarts_left_;
  Status cause_;
  std::chrono::steady_clock::time_point failed_at_;
  int last_signal_ = 0;
  int handed_on_ = 0;  // signals
  int left_by_ = 0;
  bool servers_end_ = false;
};

/// `left_by` gets the signal that has ended a task in good order, or 0.
Status Launch(const LaunchFlags& flags, int* left_by) {
  CatchSignals();
  TENON_ASSIGN_OR_RETURN(const std::vector<int> ports, FreePorts(flags.ps + flags.workers));
  std::vector<Task> tasks;
  const auto start = [&](TaskRole role, const std::string& job, int count) -> Status {
    for (int i = 0; i < count; ++i) {
      std::vector<std::string> arguments = flags.command;
      if (flags.ps > 0) {
        arguments.push_back(StrCat("--ps_hosts=", LoopbackHosts(ports, 0, flags.ps)));
      }
      arguments.push_back(StrCat("--worker_hosts=", LoopbackHosts(ports, flags.ps, flags.workers)));
      arguments.push_back(StrCat("--job_name=", job));
      arguments.push_back(StrCat("--task_index=", i));
      Task task = {role, StrCat(job, " ", i), std::move(arguments)};
      TENON_RETURN_IF_ERROR(Start(&task));
      const int port = ports[role == TaskRole::kParameterServer ? i : flags.ps + i];
      std::printf("%s at 127.0.0.1:%d, process %d\n", task.name.c_str(), port, task.pid);
      tasks.push_back(std::move(task));
    }
    return OkStatus();
  };
  TENON_RETURN_IF_ERROR(start(TaskRole::kParameterServer, kParameterServerJob, flags.ps));
  TENON_RETURN_IF_ERROR(start(TaskRole::kWorker, kWorkerJob, flags.workers));
  std::fflush(stdout);
  Launcher launcher(std::move(tasks), flags.restarts);
  const Status status = launcher.Wait();
  *left_by = launcher.left_by();
  return status;
}

}  // namespace

void AddLaunchCommand(CLI::App& app, Command* chosen) {
  auto flags = std::make_shared<LaunchFlags>();
  CLI::App* launch = app.add_subcommand(
      "launch",
      "Start the tasks of a cluster on this machine, and end with them. Ctrl-C and SIGTERM are "
      "handed on: workers end with a checkpoint, parameter servers after them (exit code 130 or "
      "143)");
  launch->add_option("--ps", flags->ps, "Parameter servers")->check(AtLeast(0));
  launch->add_option("--workers", flags->workers, "Workers")->check(AtLeast(1));
  launch
      ->add_option("--restarts", flags->restarts,
                   "How often, in all, a task that a signal has ended, such as that of a machine "
                   "without memory, is started again")
      ->check(AtLeast(0));
  launch
      ->add_option("command", flags->command,
                   "-- PROGRAM ARGS...: each task gets it with --ps_hosts, --worker_hosts, "
                   "--job_name and --task_index added")
      ->required();
  launch->callback([=] {
    *chosen = [flags] {
      int left_by = 0;
      const int code = Report(Launch(*flags, &left_by));
      return code == kDone ? SignalCode(launch_signal != 0 ? launch_signal.load() : left_by) : code;
    };
  });
}

}  // namespace tenon::tools
