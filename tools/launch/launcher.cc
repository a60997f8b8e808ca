// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/launcher.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <utility>

#include "core/base/plural.h"
#include "data/files/path.h"
#include "tools/commands.h"
#include "tools/launch/received_signals.h"
#include "tools/processes.h"

namespace tenon::tools {
namespace {

/// How long the other tasks get to end by themselves after one has failed, before and after
/// SIGTERM.
constexpr std::chrono::milliseconds kGrace{3000};
/// How long processes get that a signal has asked to end, when the task that has started them has
/// ended: they may be saving.
constexpr std::chrono::milliseconds kGraceOfAsked{30000};
/// How long processes that end with their task may take after it, and connections.
constexpr std::chrono::milliseconds kPatience{200}, kPatienceElsewhere{3000};
/// How many connections to a host may be on their way: sshd drops some of more than 10 that are not
/// known to be welcome (MaxStartups), and others may be on theirs.
constexpr int kMostConnecting = 6;

/// How long nothing may happen until all is looked at again: while tasks are read, and after.
constexpr std::chrono::milliseconds kPause{100}, kPauseOfGroups{20};

std::string OutcomeOf(int status) {
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

std::string SignalName(int signal) {
  return signal == SIGINT ? "SIGINT" : signal == SIGHUP ? "SIGHUP" : "SIGTERM";
}

}  // namespace

Launcher::Launcher(LauncherOptions options)
    : options_(std::move(options)), restarts_left_(options_.max_restarts) {}

Status Launcher::Run(const std::vector<TaskPlan>& plans) {
  TENON_RETURN_IF_ERROR(AddTasks(plans));
  // Processes whose parents have ended become children of this one, which then learns of their end.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (Task& t : tasks_) t.waits = true;
  Wait();
  for (Task& t : tasks_) t.output->ReadRest();
  screen_.Finish();
  return Outcome();
}

Status Launcher::AddTasks(const std::vector<TaskPlan>& plans) {
  const bool has_logs = !options_.log_dir.empty();
  if (has_logs) TENON_RETURN_IF_ERROR(MakeFolders(options_.log_dir));
  tasks_.reserve(plans.size());
  for (const TaskPlan& plan : plans) {
    Task& task = tasks_.emplace_back();
    task.plan = plan;
    task.name = plan.name();
    task.output = std::make_unique<TaskOutput>(
        task.name, has_logs ? JoinPath(options_.log_dir, plan.log_name()) : "", options_.is_printed,
        &screen_);
    TENON_RETURN_IF_ERROR(task.output->OpenLog());
  }
  return OkStatus();
}

Status Launcher::StartWaiting() {
  std::map<std::string, int> connecting;
  for (const Task& t : tasks_) {
    if (t.remote != nullptr && t.has_group && !t.remote->is_connected()) ++connecting[t.plan.host];
  }
  for (Task& t : tasks_) {
    if (!t.waits || t.has_group) continue;
    const bool is_here = t.plan.host.empty();
    if (!is_here && connecting[t.plan.host]++ >= kMostConnecting) continue;
    t.waits = false;
    TENON_RETURN_IF_ERROR(
        Annotate(is_here ? StartProcess(&t) : StartRemote(&t),
                 StrCat(t.name, " cannot be started", t.is_again ? " again" : "")));
    if (is_here) SayStarted(&t);
    screen_.WriteSome();
  }
  return OkStatus();
}

Status Launcher::StartProcess(Task* task) {
  ChildOptions options;
  options.take_errors = true;
  options.own_group = true;
  options.environment = options_.environment;
  const auto& own = task->plan.variables;
  options.environment.insert(options.environment.end(), own.begin(), own.end());
  options.cores = task->plan.cores;
  TENON_ASSIGN_OR_RETURN(const Child child, StartChild(task->plan.arguments, options));
  task->output->Attach(child.output);
  task->pid = child.pid;
  task->running = task->has_group = true;
  return OkStatus();
}

Status Launcher::StartRemote(Task* task) {
  task->output->ReadRest();
  task->remote = std::make_unique<SshTask>(task->plan.host);
  TENON_RETURN_IF_ERROR(task->remote->Start(task->plan, options_.ssh, options_.environment));
  task->output->Attach(task->remote->output());
  task->pid = task->remote->pid();
  task->running = task->has_group = true;
  task->is_said = false;
  return OkStatus();
}

void Launcher::SayStarted(Task* task) {
  const bool is_here = task->remote == nullptr;
  const std::string process = is_here ? StrCat(task->pid) : task->remote->process();
  const std::string cores = is_here ? CoreList(task->plan.cores) : task->remote->cores();
  if (std::exchange(task->is_again, true)) {
    screen_.Print(task->name, StrCat("started again, process ", process));
  } else {
    screen_.Print(StrCat(task->name, " at ", task->plan.address, ", process ", process,
                         cores.empty() ? "" : ", on cores ", cores));
  }
}

void Launcher::Wait() {
  while (HasTasks() || HasGroups()) {
    const Status started = StartWaiting();
    if (!started.ok() && cause_.ok()) {
      Fail(nullptr, started);
      EndGroups(SIGTERM);
    }
    PollOutput();
    Reap();
    if (TakeSuspension()) Suspend();
    if (ReceivedSignals() > handed_on_) HandOn();
    if (screen_.is_broken() && cause_.ok()) {
      Fail(nullptr, AppendToMessage(screen_.status(), "; the tasks are ended"));
      EndGroups(SIGTERM);
    }
    if (!cause_.ok()) EndOthers();
    if (left_by_ != 0 && cause_.ok()) EndServers();
    if (!HasTasks()) EndLeftovers();
    screen_.ShowState(State());
  }
}

/// Whether another host has not yet said that the task has begun, which ssh may bring after what
/// the task prints.
bool Launcher::Begins(const Task& task) {
  return task.remote != nullptr && task.remote->control() >= 0 && !task.remote->is_connected();
}

void Launcher::PollOutput() {
  // A screen that takes nothing holds up those that print, rather than have their lines kept.
  std::vector<pollfd> fds;
  std::vector<size_t> owners;
  for (size_t i = 0; i < tasks_.size() && !screen_.is_full(); ++i) {
    const size_t task = (next_to_read_ + i) % tasks_.size();
    if (tasks_[task].output->pipe() < 0 || Begins(tasks_[task])) continue;
    fds.push_back({tasks_[task].output->pipe(), POLLIN, 0});
    owners.push_back(task);
  }
  if (screen_.has_pending()) fds.push_back({STDOUT_FILENO, POLLOUT, 0});
  for (const Task& t : tasks_) {
    if (t.remote != nullptr && t.remote->control() >= 0) {
      fds.push_back({t.remote->control(), POLLIN, 0});
    }
  }
  // The end of a process that a task has left behind is noticed by looking for it.
  const auto pause = fds.empty() ? kPauseOfGroups : kPause;
  fds.push_back({ChildEnds(), POLLIN, 0});
  poll(fds.data(), fds.size(), static_cast<int>(pause.count()));
  ForgetChildEnds();
  // That a task has begun is said before what it prints.
  for (Task& t : tasks_) {
    if (t.remote != nullptr) Follow(&t);
  }
  for (size_t i = 0; i < owners.size() && !screen_.is_full(); ++i) {
    if (fds[i].revents == 0) continue;
    tasks_[owners[i]].output->Read();
    screen_.WriteSome();
    next_to_read_ = (owners[i] + 1) % tasks_.size();
  }
  screen_.WriteSome();
}

void Launcher::Reap() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto task = std::find_if(tasks_.begin(), tasks_.end(), [&](const Task& t) {
      return t.pid == pid && (t.running || (t.remote != nullptr && t.has_group));
    });
    if (task == tasks_.end()) continue;
    if (task->remote == nullptr) {
      HandleEnd(&*task, status);
      continue;
    }
    task->remote->HandleExit();
    Follow(&*task);
    if (task->running) HandleLoss(&*task);
  }
  for (Task& t : tasks_) {
    // The number of an empty group is given to no other one as soon as that.
    if (!t.running && t.has_group && kill(-t.pid, 0) != 0 && errno == ESRCH) t.has_group = false;
  }
}

void Launcher::Follow(Task* task) {
  task->remote->Progress(!screen_.is_full());
  if (task->remote->is_connected() && !std::exchange(task->is_said, true)) SayStarted(task);
  if (task->running && task->remote->end()) HandleEnd(task, *task->remote->end());
}

/// What became of the task is not known here: it ends when it notices, and is not started again.
void Launcher::HandleLoss(Task* task) {
  task->running = false;
  last_end_ = StrCat(task->name, " is lost");
  if (!cause_.ok() || ReceivedSignals() > 0 || servers_end_) return;
  const Status why = task->remote->WhyLost();
  if (task->remote->is_connected()) {
    Fail(task, Annotate(AppendToMessage(why, "; the other tasks are ended"), task->name));
    return;
  }
  Fail(nullptr, Annotate(why, StrCat(task->name, " cannot be started")));
  EndGroups(SIGTERM);
}

void Launcher::HandleEnd(Task* task, int status) {
  task->running = false;
  last_end_ = StrCat(task->name, " ended");
  const int signal = SignalInGoodOrder(status);
  const bool was_asked =
      (ReceivedSignals() > 0 || servers_end_) && (WIFSIGNALED(status) || signal != 0);
  if (status == 0 || !cause_.ok() || was_asked) return;
  if (signal != 0) {
    left_by_ = signal;
    screen_.Print(task->name, StrCat("ended by ", SignalName(signal), "; the others go on"));
    return;
  }
  screen_.Print(task->name, OutcomeOf(status));
  if (WIFSIGNALED(status) && restarts_left_ > 0) {
    --restarts_left_;
    StartAgain(task);
    return;
  }
  Fail(task, Aborted(task->name, " ", OutcomeOf(status), "; the other tasks are ended"));
}

void Launcher::StartAgain(Task* task) {
  // Processes that the dead one has started would hold its ports and files.
  SignalGroup(*task, SIGKILL);
  task->waits = true;
  if (task->remote != nullptr) return;
  task->output->ReadRest();
  task->has_group = false;
}

void Launcher::Fail(Task* task, Status cause) {
  cause_ = std::move(cause);
  failed_ = task;
  failed_at_ = std::chrono::steady_clock::now();
  for (Task& t : tasks_) t.waits = false;
}

/// The tasks get a signal that this process has got: workers end with a checkpoint, and parameter
/// servers, which hold the variables, after them. At the second one everything ends.
void Launcher::HandOn() {
  const bool is_first = handed_on_ == 0;
  handed_on_ = ReceivedSignals();
  const int signal = FirstReceivedSignal();
  screen_.Print(StrCat(SignalName(signal),
                       is_first ? ": waiting for the tasks to end; a second one ends them at once"
                                : ": the tasks are ended"));
  screen_.WriteSome();
  for (Task& t : tasks_) t.waits = false;
  // A terminal that has gone is no reason not to save.
  if (is_first) SignalGroups(signal == SIGHUP ? SIGTERM : signal);
  if (handed_on_ > 1) EndGroups(SIGKILL);
}

/// The tasks are no part of the terminal's group, and stop and go on with it all the same.
void Launcher::Suspend() {
  SignalGroups(SIGSTOP);
  raise(SIGSTOP);
  SignalGroups(SIGCONT);
}

/// Parameter servers would wait for the return of a worker that nobody here starts again.
void Launcher::EndServers() {
  const bool has_workers = std::any_of(tasks_.begin(), tasks_.end(), [](const Task& t) {
    return t.running && t.plan.role != TaskRole::kParameterServer;
  });
  if (has_workers || std::exchange(servers_end_, true)) return;
  SignalGroups(SIGTERM);
}

void Launcher::EndOthers() {
  const auto since = std::chrono::steady_clock::now() - failed_at_;
  if (since > 2 * kGrace) {
    EndGroups(SIGKILL);
  } else if (since > kGrace) {
    EndGroups(SIGTERM);
  }
}

/// Processes that ended tasks have started are ended, too, and given up where even SIGKILL does not
/// end them.
void Launcher::EndLeftovers() {
  if (!HasGroups()) return;
  const auto now = std::chrono::steady_clock::now();
  if (!left_over_since_) left_over_since_ = now;
  const bool is_elsewhere = std::any_of(tasks_.begin(), tasks_.end(), [](const Task& t) {
    return t.has_group && t.remote != nullptr;
  });
  const auto since = now - *left_over_since_ - (is_elsewhere ? kPatienceElsewhere : kPatience);
  if (since < SteadyTime::duration::zero()) return;
  const bool was_asked = handed_on_ > 0 || servers_end_;
  if (!std::exchange(leftovers_are_said_, true)) {
    for (const Task& t : tasks_) {
      if (!t.has_group) continue;
      screen_.Print(t.name, was_asked ? "has left processes, which are waited for"
                                      : "has left processes, which are ended");
    }
  }
  if (!was_asked) EndGroups(SIGTERM);
  const auto grace = was_asked ? kGraceOfAsked : kGrace;
  if (since > grace) EndGroups(SIGKILL);
  if (since < grace + kGrace) return;
  for (Task& t : tasks_) {
    if (std::exchange(t.has_group, false)) screen_.Print(t.name, "has processes that do not end");
  }
}

void Launcher::EndGroups(int signal) {
  if (last_signal_ == SIGKILL || last_signal_ == signal) return;
  last_signal_ = signal;
  SignalGroups(signal);
}

void Launcher::SignalGroups(int signal) {
  for (const Task& t : tasks_) {
    if (t.has_group) SignalGroup(t, signal);
  }
}

void Launcher::SignalGroup(const Task& task, int signal) {
  if (task.remote != nullptr) {
    task.remote->Signal(signal);
  } else {
    kill(-task.pid, signal);
  }
}

bool Launcher::HasTasks() const {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [](const Task& t) { return t.running || t.waits; });
}

int Launcher::NumRunning() const {
  return static_cast<int>(
      std::count_if(tasks_.begin(), tasks_.end(), [](const Task& t) { return t.running; }));
}

bool Launcher::HasGroups() const {
  return std::any_of(tasks_.begin(), tasks_.end(), [](const Task& t) { return t.has_group; });
}

std::string Launcher::State() const {
  return StrCat(NumRunning(), " of ",
                Plural(static_cast<int64_t>(tasks_.size()), "task runs", "tasks run"),
                last_end_.empty() ? "" : ", ", last_end_);
}

Status Launcher::Outcome() const {
  if (failed_ != nullptr) {
    const TaskOutput& output = *failed_->output;
    const std::string where = output.log_path().empty() || !output.log_status().ok()
                                  ? ""
                                  : StrCat("; all it has printed is in ", output.log_path());
    if (output.last_lines().empty())
      return AppendToMessage(cause_, StrCat(where, "; it printed nothing"));
    std::string lines;
    for (const std::string& line : output.last_lines()) StrAppend(&lines, "\n  ", line);
    return AppendToMessage(cause_,
                           StrCat(where, "\nThe last lines of ", failed_->name, ":", lines));
  }
  if (!cause_.ok()) return cause_;
  for (const Task& t : tasks_) TENON_RETURN_IF_ERROR(t.output->log_status());
  return screen_.status();
}

}  // namespace tenon::tools
