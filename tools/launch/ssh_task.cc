// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/ssh_task.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <sstream>

#include "core/base/strings.h"
#include "tools/commands.h"
#include "tools/processes.h"

namespace tenon::tools {
namespace {

constexpr std::chrono::seconds kAnswerDeadline{25}, kBeat{15};
constexpr std::chrono::milliseconds kPoll{200};
/// How long ssh gets after what it was to end or has nothing more to bring.
constexpr std::chrono::milliseconds kPatienceWithSsh{3000}, kDrain{2000};
constexpr size_t kMostRemarks = 20, kLongestRemark = 1000;

const char* SignalWord(int number) {
  switch (number) {
    case SIGINT:
      return "INT";
    case SIGKILL:
      return "KILL";
    case SIGSTOP:
      return "STOP";
    case SIGCONT:
      return "CONT";
    default:
      return "TERM";
  }
}

int WaitStatus(int code) {
  const bool is_good_order = code == SignalCode(SIGINT) || code == SignalCode(SIGTERM);
  return code > 128 && code < 128 + NSIG && !is_good_order ? code - 128 : W_EXITCODE(code, 0);
}

/// What a user can do about the last words of ssh; "" where they say enough.
std::string Advice(std::string_view words, const std::string& host) {
  if (words.find("Host key verification failed") != std::string_view::npos) {
    return StrCat(
        ": the key of this host is none that this account knows: compare it once by `ssh ", host,
        "`, or collect the keys by ssh-keyscan");
  }
  if (words.find("Permission denied") != std::string_view::npos) {
    return StrCat(": passwords are not asked for: give the account there a key of yours by `",
                  "ssh-copy-id ", host, "`, or name one by --ssh 'ssh -i KEY'");
  }
  return "";
}

void CloseEnd(int* end) {
  if (*end >= 0) close(*end);
  *end = -1;
}

}  // namespace

SshTask::~SshTask() {
  CloseEnd(&input_);
  CloseEnd(&control_);
}

Status SshTask::Start(const TaskPlan& task, const SshOptions& options,
                      const std::vector<std::string>& variables) {
  ChildOptions child_options;
  child_options.give_input = child_options.own_errors = child_options.own_group = true;
  TENON_ASSIGN_OR_RETURN(const Child child, StartChild(SshCommand(task, options), child_options));
  pid_ = child.pid;
  input_ = child.input;
  output_ = child.output;
  control_ = child.errors;
  for (const int end : {input_, control_}) fcntl(end, F_SETFL, O_NONBLOCK);
  deadline_ = std::chrono::steady_clock::now() + kAnswerDeadline;
  unwritten_ = RemoteScript(task, options, variables);
  Flush();
  return OkStatus();
}

void SshTask::Progress(bool is_read) {
  Flush();
  ReadControl();
  const SteadyTime now = std::chrono::steady_clock::now();
  if (is_connected() && now >= next_beat_) {
    next_beat_ = now + kBeat;
    if (unwritten_.empty()) Send("beat");
  }
  if (end_ && now >= next_poll_) {
    next_poll_ = now + kPoll;
    if (unwritten_.empty()) Send("poll");
  }
  if (!is_connected() && !end_ && refusal_.empty() && !is_late_ && now >= deadline_) {
    is_late_ = true;
    KillSsh(SIGKILL);
  }
  if (is_gone_ && !is_read && kill_at_) kill_at_ = now + kDrain;
  if (kill_at_ && now >= *kill_at_) KillSsh(SIGKILL);
}

void SshTask::HandleExit() {
  ReadControl();
  // A command that ssh has used to connect may be left.
  KillSsh(SIGTERM);
  pid_ = -1;
  CloseEnd(&input_);
  CloseEnd(&control_);
}

void SshTask::Signal(int number) {
  if (!is_connected()) {
    KillSsh(number);
    return;
  }
  Send(SignalWord(number));
  if (number == SIGKILL && !kill_at_) {
    kill_at_ = std::chrono::steady_clock::now() + kPatienceWithSsh;
  }
}

Status SshTask::WhyLost() const {
  if (!refusal_.empty()) return FailedPrecondition(host_, ": ", refusal_);
  std::string last = remarks_.empty() ? "" : remarks_.back();
  if (last.ends_with('.')) last.pop_back();
  const std::string words = last.empty() ? "" : StrCat(": ", last, Advice(last, host_));
  if (is_connected()) return Unavailable("the connection to ", host_, " is lost", words);
  if (is_late_) {
    return DeadlineExceeded("ssh has not reached ", host_, " for ", kAnswerDeadline.count(), " s",
                            words);
  }
  return Unavailable("ssh does not reach ", host_, words);
}

void SshTask::Send(std::string_view line) {
  if (input_ < 0) return;
  StrAppend(&unwritten_, line, "\n");
  Flush();
}

void SshTask::Flush() {
  while (!unwritten_.empty() && input_ >= 0) {
    const ssize_t n = write(input_, unwritten_.data(), unwritten_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) CloseEnd(&input_);
    if (n < 0) return;
    unwritten_.erase(0, static_cast<size_t>(n));
  }
}

void SshTask::ReadControl() {
  char piece[4096];
  while (control_ >= 0) {
    const ssize_t n = read(control_, piece, sizeof(piece));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) CloseEnd(&control_);
    unread_.append(piece, n > 0 ? static_cast<size_t>(n) : 0);
    if (n <= 0 && !unread_.empty()) unread_ += '\n';
    for (size_t end; (end = unread_.find('\n')) != std::string::npos;) {
      TakeLine(std::string_view(unread_).substr(0, end));
      unread_.erase(0, end + 1);
    }
    // Nobody who is to be understood writes such lines.
    if (unread_.size() > sizeof(piece)) unread_.resize(sizeof(piece));
  }
}

void SshTask::TakeLine(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (!line.starts_with(kAnswer)) {
    if (line.find_first_not_of(' ') == std::string_view::npos) return;
    if (remarks_.size() == kMostRemarks) remarks_.pop_front();
    remarks_.emplace_back(line.substr(0, kLongestRemark));
    return;
  }
  const std::string answer(line.substr(kAnswer.size()));
  std::istringstream words(answer);
  std::string word;
  words >> word;
  if (word == "connected") {
    words >> process_ >> cores_;
  } else if (word == "refused") {
    refusal_ = answer.substr(std::min(answer.size(), word.size() + 1));
  } else if (word == "ended") {
    int code = 0;
    words >> code;
    end_ = WaitStatus(code);
  } else if (word == "gone") {
    // A process that has left the task's session may hold its output, and ssh with it.
    is_gone_ = true;
    kill_at_ = std::chrono::steady_clock::now() + kDrain;
  }
}

void SshTask::KillSsh(int number) {
  kill_at_.reset();
  if (pid_ > 0) kill(-pid_, number);
}

}  // namespace tenon::tools
