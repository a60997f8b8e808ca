// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/status.h"

namespace tenon::tools {

/// A process started by this one, with the end of the pipe that its output comes through.
struct Child {
  pid_t pid = -1;
  int output = -1;  // its standard output and, when asked, its standard error
  int input = -1;   // its standard input, when asked
  int errors = -1;  // its standard error, when asked for alone
};

struct ChildOptions {
  bool take_errors = false;  // standard error into the pipe; else it stays this process's
  bool own_errors = false;   // standard error into a pipe of its own
  bool give_input = false;
  /// The child leads a process group of its own: a terminal's signals do not reach it, and it reads
  /// nothing where the standard input is a terminal.
  bool own_group = false;
  std::vector<std::string> environment = {};  // "NAME=VALUE", beside or instead of this process's
  std::vector<int> cores = {};                // those that it may run on; none: this process's
};

/// Starts a program, found as the shell does. It is ended when this process dies. A program that
/// does not exist says so on its standard error and ends with code 127.
StatusOr<Child> StartChild(const std::vector<std::string>& arguments,
                           const ChildOptions& options = {});

/// The cores that this process may run on.
StatusOr<std::vector<int>> OwnCores();

/// Reads a line of the child's output, without its end. Unavailable when the output has ended.
StatusOr<std::string> ReadLine(const Child& child);

/// Sends SIGTERM, waits, and closes the pipes.
void EndChild(Child* child);

/// Ports of loopback that are free now and differ. Until this process ends nobody gets them who
/// asks the system for a port; servers that set SO_REUSEADDR, as those of gRPC do, may listen at
/// them.
StatusOr<std::vector<int>> FreePorts(int count);

/// "127.0.0.1:PORT,..." for `count` of the ports from `begin` on.
std::string LoopbackHosts(const std::vector<int>& ports, int begin, int count);

/// The path of this program.
std::string OwnPath();

/// The folder or file `name` of what is installed beside the programs (share/tenon), or of share/
/// in the source tree when this program runs from its build folder. NotFound names both.
StatusOr<std::string> FindShared(const std::string& name);

}  // namespace tenon::tools
