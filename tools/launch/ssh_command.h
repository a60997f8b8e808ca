// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "distributed/resolver/environment.h"
#include "tools/launch/task_plan.h"

// The commands by which OpenSSH starts a task on another host. ssh's own command line is the same
// for every task: a small sh there reads a script from its standard input, so that neither host
// shows the variables of a task, secrets among them, to who lists its processes.

namespace tenon::tools {

/// How all tasks of a job are started by ssh.
struct SshOptions {
  std::vector<std::string> program = {"ssh"};  // with options
  std::string directory;                       // which tasks run in
  int cpus_per_task = 0;                       // 0: all are everybody's
};

/// The program and its options in a user's words: "ssh -p 2222 -i 'my key'". Wrong usage for none.
StatusOr<std::vector<std::string>> ParseSsh(const std::string& text);

/// Variables of this process that tasks elsewhere get, "NAME=VALUE": those that say where programs
/// and libraries are found, and the settings of Tenon, of OpenMP and of object stores.
std::vector<std::string> CarriedVariables(const Environment& environment);
/// What they are called, for people.
std::string_view CarriedNames();
/// Wrong usage for a variable of a user that a shell cannot export.
Status CheckVariables(const std::vector<std::string>& variables);

/// `program` as it is to be found on every host: a name alone becomes the path that it has on this
/// one.
std::string SameProgram(const std::string& program, const Environment& environment);

/// The words of ssh that start the task once RemoteScript() has come through the standard input.
std::vector<std::string> SshCommand(const TaskPlan& task, const SshOptions& options);

/// What the sh there is to do, after a line with the number of its bytes: to run the task in a
/// session of its own, with these variables ("NAME=VALUE"), and to follow the lines that come
/// afterwards: "INT" and other signals are sent to the task's processes, "beat" says that the
/// launcher is still there, and "poll" that it wants to know when none of them is left. When the
/// input ends, or nothing came for a minute, they are ended. It answers on its standard error:
///
///   tenon-launch connected PROCESS [CORES]
///   tenon-launch refused WHY                before the task has begun
///   tenon-launch ended CODE                 the task's first process; 128 and more for a signal
///   tenon-launch gone                       all of them
std::string RemoteScript(const TaskPlan& task, const SshOptions& options,
                         const std::vector<std::string>& variables);
inline constexpr std::string_view kAnswer = "tenon-launch ";

/// A line for a shell that runs the task alone by ssh, with additions to its environment.
std::string SshLine(const TaskPlan& task, const SshOptions& options,
                    const std::vector<std::string>& environment);

}  // namespace tenon::tools
