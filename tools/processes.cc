// SPDX-License-Identifier: Apache-2.0
#include "tools/processes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace tenon::tools {

namespace {

/// A mask of cores that is as large as machines are, where cpu_set_t ends at 1,024.
class CoreMask {
 public:
  static constexpr int kCores = 1 << 14;

  void Add(int core) { CPU_SET_S(core, size(), words_.data()); }
  bool Has(int core) const { return CPU_ISSET_S(core, size(), words_.data()); }
  size_t size() const { return words_.size() * sizeof(cpu_set_t); }
  cpu_set_t* data() { return words_.data(); }

 private:
  std::vector<cpu_set_t> words_ = std::vector<cpu_set_t>(kCores / CPU_SETSIZE);
};

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// This process's environment, in which `additions` take the place of variables of their names.
std::vector<std::string> EnvironmentWith(const std::vector<std::string>& additions) {
  const auto name_of = [](std::string_view variable) {
    return variable.substr(0, variable.find('='));
  };
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const bool is_replaced = std::any_of(
        additions.begin(), additions.end(),
        [&](const std::string& addition) { return name_of(addition) == name_of(*variable); });
    if (!is_replaced) environment.emplace_back(*variable);
  }
  environment.insert(environment.end(), additions.begin(), additions.end());
  return environment;
}

[[noreturn]] void Execute(char* const* arguments) {
  execvp(arguments[0], arguments);
  const int error = errno;
  const char* const name = arguments[0];
  const bool is_here = std::strchr(name, '/') == nullptr && access(name, X_OK) == 0;
  std::fprintf(stderr, "cannot run %s: %s%s%s%s\n", name, std::strerror(error),
               is_here ? "; did you mean ./" : "", is_here ? name : "", is_here ? "?" : "");
  _exit(127);
}

/// While one lives, signals wait. A child that is forked meanwhile would lose those that come
/// before its program runs to this process's handlers.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~HeldSignals() { Release(); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  /// For the child: what has come does what it does to a program without handlers.
  void ReleaseWithoutHandlers() {
    for (int number = 1; number < NSIG; ++number) {
      struct sigaction action = {};
      if (sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
      action = {};
      sigaction(number, &action, nullptr);
    }
    Release();
  }

 private:
  void Release() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  sigset_t before_;
};

/// A pipe whose ends are closed in the end, unless they are taken.
struct Pipe {
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) close(end);
    }
  }
  Status Open() {
    if (pipe2(ends, O_CLOEXEC) == 0) return OkStatus();
    return Unavailable("pipe: ", std::strerror(errno));
  }
  int Take(int end) { return std::exchange(ends[end], -1); }

  int ends[2] = {-1, -1};
};

void LeaveTerminal() {
  setpgid(0, 0);
  // A read of the terminal by a group in its background would stop the process.
  if (isatty(STDIN_FILENO) == 0) return;
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing < 0) return;
  dup2(nothing, STDIN_FILENO);
  close(nothing);
}

}  // namespace

StatusOr<Child> StartChild(const std::vector<std::string>& arguments, const ChildOptions& options) {
  Pipe out, in, errors;
  TENON_RETURN_IF_ERROR(out.Open());
  if (options.give_input) TENON_RETURN_IF_ERROR(in.Open());
  if (options.own_errors) TENON_RETURN_IF_ERROR(errors.Open());
  // Memory is taken before the fork: another thread may hold the allocator's lock in it.
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<std::string> environment = EnvironmentWith(options.environment);
  std::vector<char*> variables = Pointers(environment);
  CoreMask cores;
  for (const int core : options.cores) cores.Add(core);
  const pid_t parent = getpid();
  HeldSignals held;
  const pid_t pid = fork();
  if (pid < 0) return Unavailable("fork: ", std::strerror(errno));
  if (pid == 0) {
    // However this process dies, its children must not outlive it.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    if (options.own_group) LeaveTerminal();
    held.ReleaseWithoutHandlers();
    dup2(out.ends[1], STDOUT_FILENO);
    if (options.take_errors) dup2(out.ends[1], STDERR_FILENO);
    if (options.own_errors) dup2(errors.ends[1], STDERR_FILENO);
    if (!options.cores.empty() && sched_setaffinity(0, cores.size(), cores.data()) != 0) {
      std::fprintf(stderr, "cannot run on the cores: %s\n", std::strerror(errno));
      _exit(127);
    }
    if (options.give_input) dup2(in.ends[0], STDIN_FILENO);
    environ = variables.data();
    Execute(argv.data());
  }
  // Here too, so that the group is there when this function returns.
  if (options.own_group) setpgid(pid, pid);
  return Child{pid, out.Take(0), in.Take(1), errors.Take(0)};
}

StatusOr<std::vector<int>> OwnCores() {
  CoreMask mask;
  if (sched_getaffinity(0, mask.size(), mask.data()) != 0) {
    return Unavailable("sched_getaffinity: ", std::strerror(errno));
  }
  std::vector<int> cores;
  for (int core = 0; core < CoreMask::kCores; ++core) {
    if (mask.Has(core)) cores.push_back(core);
  }
  return cores;
}

StatusOr<std::string> ReadLine(const Child& child) {
  std::string line;
  char c;
  while (true) {
    const ssize_t n = read(child.output, &c, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return Unavailable("the process has ended",
                         line.empty() ? "" : StrCat(" after '", line, "'"));
    }
    if (c == '\n') return line;
    line += c;
  }
}

void EndChild(Child* child) {
  if (child->pid > 0) {
    kill(child->pid, SIGTERM);
    waitpid(child->pid, nullptr, 0);
  }
  if (child->output >= 0) close(child->output);
  if (child->input >= 0) close(child->input);
  if (child->errors >= 0) close(child->errors);
  *child = Child();
}

StatusOr<std::vector<int>> FreePorts(int count) {
  std::vector<int> ports;
  Status status;
  for (int i = 0; i < count && status.ok(); ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (fd < 0 || bind(fd, generic, length) != 0 || getsockname(fd, generic, &length) != 0) {
      status = Unavailable("cannot find a free port: ", std::strerror(errno));
    }
    // A server may listen there all the same, and the system gives the port to nobody else.
    const int on = 1;
    static_cast<void>(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
    ports.push_back(ntohs(address.sin_port));
  }
  TENON_RETURN_IF_ERROR(status);
  return ports;
}

std::string LoopbackHosts(const std::vector<int>& ports, int begin, int count) {
  std::vector<std::string> hosts;
  for (int i = begin; i < begin + count; ++i) hosts.push_back(StrCat("127.0.0.1:", ports[i]));
  return Join(hosts, ",");
}

std::string OwnPath() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

StatusOr<std::string> FindShared(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(OwnPath()).parent_path();
  const auto installed = folder.parent_path() / "share" / "tenon" / name;
  const auto source = folder.parent_path().parent_path() / "share" / name;
  for (const auto& path : {installed, source}) {
    if (std::filesystem::exists(path)) return path.string();
  }
  return NotFound("there is neither ", installed.string(), " nor ", source.string());
}

}  // namespace tenon::tools
