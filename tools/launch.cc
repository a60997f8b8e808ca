// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <thread>

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
  std::vector<std::string> command;
};

/// One task's process and the pipe that carries its output.
struct Task {
  std::string name;  // "worker 0"
  pid_t pid = -1;
  int output = -1;
  std::string line;  // what came since the last newline
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

class Launcher {
 public:
  explicit Launcher(std::vector<Task> tasks) : tasks_(std::move(tasks)) {}

  /// Waits for all tasks. The first one that fails is the cause of what happens to the others.
  Status Wait() {
    while (AnyRunning()) {
      PollOutput();
      Reap();
      if (!cause_.ok()) EndOthers();
    }
    return cause_;
  }

 private:
  bool AnyRunning() const {
    for (const Task& t : tasks_) {
      if (t.running || t.output >= 0) return true;
    }
    return false;
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
    for (Task& t : tasks_) {
      int status = 0;
      if (!t.running || waitpid(t.pid, &status, WNOHANG) != t.pid) continue;
      t.running = false;
      if (status != 0 && cause_.ok()) {
        cause_ = Aborted(t.name, " ", Outcome(status), "; the other tasks are ended");
        failed_at_ = std::chrono::steady_clock::now();
      }
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
  Status cause_;
  std::chrono::steady_clock::time_point failed_at_;
  int last_signal_ = 0;
};

Status Launch(const LaunchFlags& flags) {
  TENON_ASSIGN_OR_RETURN(const std::vector<int> ports, FreePorts(flags.ps + flags.workers));
  std::vector<Task> tasks;
  const auto start = [&](const std::string& job, int count) -> Status {
    for (int i = 0; i < count; ++i) {
      std::vector<std::string> arguments = flags.command;
      if (flags.ps > 0) {
        arguments.push_back(StrCat("--ps_hosts=", LoopbackHosts(ports, 0, flags.ps)));
      }
      arguments.push_back(StrCat("--worker_hosts=", LoopbackHosts(ports, flags.ps, flags.workers)));
      arguments.push_back(StrCat("--job_name=", job));
      arguments.push_back(StrCat("--task_index=", i));
      TENON_ASSIGN_OR_RETURN(const Child child, StartChild(arguments, {.take_errors = true}));
      tasks.push_back({StrCat(job, " ", i), child.pid, child.output, "", true});
      const int port = ports[job == "ps" ? i : flags.ps + i];
      std::printf("%s at 127.0.0.1:%d, process %d\n", tasks.back().name.c_str(), port, child.pid);
    }
    return OkStatus();
  };
  TENON_RETURN_IF_ERROR(start("ps", flags.ps));
  TENON_RETURN_IF_ERROR(start("worker", flags.workers));
  std::fflush(stdout);
  return Launcher(std::move(tasks)).Wait();
}

}  // namespace

void AddLaunchCommand(CLI::App& app, Command* chosen) {
  auto flags = std::make_shared<LaunchFlags>();
  CLI::App* launch = app.add_subcommand(
      "launch", "Start the tasks of a cluster on this machine, and end with them");
  launch->add_option("--ps", flags->ps, "Parameter servers")->check(AtLeast(0));
  launch->add_option("--workers", flags->workers, "Workers")->check(AtLeast(1));
  launch
      ->add_option("command", flags->command,
                   "-- PROGRAM ARGS...: each task gets it with --ps_hosts, --worker_hosts, "
                   "--job_name and --task_index added")
      ->required();
  launch->callback([=] { *chosen = [flags] { return Report(Launch(*flags)); }; });
}

}  // namespace tenon::tools
