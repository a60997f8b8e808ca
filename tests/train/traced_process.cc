// SPDX-License-Identifier: Apache-2.0
#include "tests/train/traced_process.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "data/files/file.h"

namespace tenon::testing {

#if defined(__x86_64__)

namespace {

/// Calls that change files, what they are called, and where the path or descriptor is that they
/// change.
struct ChangingCall {
  long number;
  const char* name;
  int path = -1;   // argument that is a path
  int other = -1;  // and the path it gets
  bool descriptor = false;
};

constexpr std::array kChanging = {
    ChangingCall{SYS_open, "open", 0},
    ChangingCall{SYS_creat, "creat", 0},
    ChangingCall{SYS_openat, "open", 1},
    ChangingCall{SYS_write, "write", -1, -1, true},
    ChangingCall{SYS_pwrite64, "write", -1, -1, true},
    ChangingCall{SYS_writev, "write", -1, -1, true},
    ChangingCall{SYS_ftruncate, "truncate", -1, -1, true},
    ChangingCall{SYS_fsync, "fsync", -1, -1, true},
    ChangingCall{SYS_fdatasync, "fsync", -1, -1, true},
    ChangingCall{SYS_close, "close", -1, -1, true},
    ChangingCall{SYS_rename, "rename", 0, 1},
    ChangingCall{SYS_renameat, "rename", 1, 3},
    ChangingCall{SYS_renameat2, "rename", 1, 3},
    ChangingCall{SYS_unlink, "unlink", 0},
    ChangingCall{SYS_unlinkat, "unlink", 1},
    ChangingCall{SYS_rmdir, "unlink", 0},
    ChangingCall{SYS_mkdir, "mkdir", 0},
    ChangingCall{SYS_mkdirat, "mkdir", 1},
};

/// A thread of the process, stopped at a call.
class StoppedCall {
 public:
  explicit StoppedCall(pid_t thread) : thread_(thread) {
    ptrace(PTRACE_GETREGS, thread, nullptr, &registers_);
  }
  long number() const { return static_cast<long>(registers_.orig_rax); }
  unsigned long long argument(int i) const {
    const std::array<unsigned long long, 4> all = {registers_.rdi, registers_.rsi, registers_.rdx,
                                                   registers_.r10};
    return all[i];
  }
  /// Relative ones are of its working directory.
  std::string Path(int i) const {
    std::string path;
    for (unsigned long long at = argument(i);; at += sizeof(long)) {
      errno = 0;
      const long word = ptrace(PTRACE_PEEKDATA, thread_, at, nullptr);
      if (errno != 0) return path;
      std::array<char, sizeof(long)> bytes;
      std::memcpy(bytes.data(), &word, sizeof(long));
      for (const char c : bytes) {
        if (c == '\0') return path;
        path += c;
      }
    }
  }
  std::string Descriptor() const { return Link(StrCat("fd/", argument(0))); }
  std::string Folder() const { return Link("cwd"); }

 private:
  std::string Link(const std::string& name) const {
    std::error_code error;
    return std::filesystem::read_symlink(StrCat("/proc/", thread_, "/", name), error).string();
  }

  const pid_t thread_;
  user_regs_struct registers_ = {};
};

/// Follows what the calls do to the files of a folder.
class FileFollower {
 public:
  FileFollower(const std::string& folder, FileTrace* trace)
      : root_(std::filesystem::canonical(folder).string() + "/"), trace_(trace) {}

  /// Whether the call changes files of the folder: then it is in the trace.
  bool Meets(const StoppedCall& stopped) {
    const ChangingCall* call = nullptr;
    for (const ChangingCall& c : kChanging) {
      if (c.number == stopped.number()) call = &c;
    }
    if (call == nullptr) return false;
    const std::string name = call->name;
    path_ = call->descriptor ? stopped.Descriptor() : Absolute(stopped, call->path);
    if (name == "open" && !Creates(*call, stopped)) return false;
    if (!StrCat(path_, "/").starts_with(root_)) return false;
    to_ = call->other >= 0 ? Absolute(stopped, call->other) : "";
    name_ = name;
    trace_->calls.push_back(StrCat(name, " ", Inside(path_), to_.empty() ? "" : " ", Inside(to_)));
    return true;
  }

  /// That call is done.
  void Apply() {
    if (name_ == "open" || name_ == "write" || name_ == "truncate") trace_->unsynced.insert(path_);
    if (name_ == "fsync") {
      trace_->unsynced.erase(path_);
      unsynced_names_.erase(path_);
    }
    if (name_ == "mkdir") unsynced_names_.insert(FolderOf(path_));
    // An index, a state file, the folder of a model: names without an ending.
    const bool enters =
        !to_.empty() && (to_.ends_with(".index") || NameOf(to_).find('.') == std::string::npos);
    if ((enters || name_ == "unlink") && !unsynced_names_.empty()) {
      trace_->mistakes.push_back(
          StrCat(trace_->calls.back(), " before the folder of what it relies on is synced"));
    }
    if (name_ == "unlink") trace_->unsynced.erase(path_);
    if (name_ != "rename") return;
    if (trace_->unsynced.contains(path_)) {
      trace_->mistakes.push_back(StrCat(trace_->calls.back(), " before the file is synced"));
      trace_->unsynced.erase(path_);
      trace_->unsynced.insert(to_);
    }
    unsynced_names_.insert(FolderOf(to_));
  }

 private:
  static bool Creates(const ChangingCall& call, const StoppedCall& stopped) {
    if (call.number == SYS_creat) return true;
    return (stopped.argument(call.path + 1) & (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR)) != 0;
  }
  std::string Inside(const std::string& path) const {
    return path.size() < root_.size() ? "" : path.substr(root_.size());
  }
  static std::string Absolute(const StoppedCall& stopped, int argument) {
    const std::string path = stopped.Path(argument);
    return path.starts_with('/') ? path : JoinPath(stopped.Folder(), path);
  }

  const std::string root_;
  FileTrace* const trace_;
  std::string name_, path_, to_;
  std::set<std::string> unsynced_names_;  // folders
};

[[noreturn]] void Become(const std::vector<std::string>& arguments,
                         const std::map<std::string, std::string>& environment) {
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv = {const_cast<char*>("/proc/self/exe")};
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  const int nowhere = open("/dev/null", O_WRONLY);  // what GoogleTest says there
  dup2(nowhere, STDOUT_FILENO);
  ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

}  // namespace

Status CanTrace() {
  const pid_t child = fork();
  if (child == 0) _exit(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return OkStatus();
  return PermissionDenied("processes may not be traced here");
}

FileTrace RunTraced(const std::vector<std::string>& arguments,
                    const std::map<std::string, std::string>& environment,
                    const std::string& folder, int die_at) {
  FileTrace trace;
  FileFollower files(folder, &trace);
  const pid_t child = fork();
  if (child == 0) Become(arguments, environment);
  int status = 0;
  waitpid(child, &status, 0);
  constexpr long kOptions =
      PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
  ptrace(PTRACE_SETOPTIONS, child, nullptr, kOptions);
  ptrace(PTRACE_CONT, child, nullptr, nullptr);
  bool dying = false;
  while (true) {
    const pid_t thread = waitpid(-1, &status, __WALL);
    if (thread < 0) return trace;
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (thread != child) continue;
      trace.finished = WIFEXITED(status) && !dying;
      trace.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
      return trace;
    }
    long signal = WSTOPSIG(status);
    if (signal == SIGTRAP) signal = 0;
    if (signal == SIGSTOP) signal = 0;  // a thread's beginning
    if (status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8) && !dying &&
        files.Meets(StoppedCall(thread))) {
      if (static_cast<int>(trace.calls.size()) == die_at) {
        dying = true;
        kill(child, SIGKILL);
        continue;
      }
      files.Apply();
    }
    ptrace(PTRACE_CONT, thread, nullptr, signal);
  }
}

void LetCallsBeTraced() {
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const ChangingCall& call : kChanging) {
    program.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call.number), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter = {static_cast<unsigned short>(program.size()), program.data()};
  TENON_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  TENON_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

#else

Status CanTrace() { return Unimplemented("processes are traced on x86-64 only"); }
FileTrace RunTraced(const std::vector<std::string>&, const std::map<std::string, std::string>&,
                    const std::string&, int) {
  return {};
}
void LetCallsBeTraced() {}

#endif

}  // namespace tenon::testing
