// SPDX-License-Identifier: Apache-2.0
#include "tools/processes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace tenon::tools {

StatusOr<Child> StartChild(const std::vector<std::string>& arguments, const ChildOptions& options) {
  int out[2], in[2] = {-1, -1};
  if (pipe2(out, O_CLOEXEC) != 0 || (options.give_input && pipe2(in, O_CLOEXEC) != 0)) {
    return Unavailable("pipe: ", std::strerror(errno));
  }
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return Unavailable("fork: ", std::strerror(errno));
  if (pid == 0) {
    // However this process dies, its children must not outlive it.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    dup2(out[1], STDOUT_FILENO);
    if (options.take_errors) dup2(out[1], STDERR_FILENO);
    if (options.give_input) dup2(in[0], STDIN_FILENO);
    execvp(argv[0], argv.data());
    const int error = errno;
    const bool is_here = std::strchr(argv[0], '/') == nullptr && access(argv[0], X_OK) == 0;
    std::fprintf(stderr, "cannot run %s: %s%s%s%s\n", argv[0], std::strerror(error),
                 is_here ? "; did you mean ./" : "", is_here ? argv[0] : "", is_here ? "?" : "");
    _exit(127);
  }
  close(out[1]);
  if (options.give_input) close(in[0]);
  return Child{pid, out[0], in[1]};
}

StatusOr<std::string> ReadLine(const Child& child) {
  std::string line;
  char c;
  while (true) {
    const ssize_t n = read(child.output, &c, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Unavailable("the process has ended after '", line, "'");
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
  *child = Child();
}

StatusOr<std::vector<int>> FreePorts(int count) {
  std::vector<int> sockets, ports;  // all are held until all are chosen, so that they differ
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
    sockets.push_back(fd);
    ports.push_back(ntohs(address.sin_port));
  }
  for (const int fd : sockets) close(fd);
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
