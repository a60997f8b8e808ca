// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/ssh_flags.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "core/base/strings.h"
#include "distributed/resolver/environment.h"
#include "tools/commands.h"
#include "tools/launch/host_plan.h"
#include "tools/launch/job_token.h"

namespace tenon::tools {

void SshFlags::AddTo(CLI::App& launch) {
  CLI::Option* const list = launch.add_option(
      "--hosts", hosts,
      "HOST:SLOTS,...: start the tasks by ssh on these hosts, parameter servers first, so many on "
      "each (1 without a number)");
  launch
      .add_option("--hostfile", host_file,
                  "The same from a file, a host a line: HOST slots=N or HOST:N")
      ->excludes(list);
  launch.add_option("--ssh", ssh,
                    "The program that reaches these hosts, and its options; default: ssh");
  launch
      .add_option(
          "--first_port", first_port,
          "The port of the first task of each host, others have those that follow; default: "
          "one from 10000 to 31900, drawn")
      ->check(Between(1, 65535));
}

Status SshFlags::Check() const {
  if (is_given() || (first_port == 0 && !ssh)) return OkStatus();
  return WrongUsage(StrCat(ssh ? "--ssh" : "--first_port", " needs --hosts or --hostfile"));
}

StatusOr<std::vector<TaskPlan>> SshFlags::Plan(ClusterShape shape) const {
  TENON_ASSIGN_OR_RETURN(const std::vector<HostSlots> slots,
                         hosts.empty() ? ReadHostFile(host_file) : ParseHosts(hosts));
  shape.command[0] = SameProgram(shape.command[0], Environment::OfProcess());
  if (workers->count() == 0) shape.workers = std::max(1, NumSlots(slots) - shape.ps);
  TENON_ASSIGN_OR_RETURN(std::vector<TaskPlan> plans, PlanTasksOnHosts(shape, slots, first_port));
  if (shape.gpus_per_task > 0) DealGpus(shape.gpus_per_task, {}, &plans);
  return plans;
}

StatusOr<SshOptions> SshFlags::Options(const ClusterShape& shape) const {
  SshOptions options;
  TENON_ASSIGN_OR_RETURN(options.program, ParseSsh(ssh.value_or("ssh")));
  options.cpus_per_task = shape.cpus_per_task;
  char folder[PATH_MAX];
  if (getcwd(folder, sizeof(folder)) == nullptr) {
    return Unavailable("the folder that the tasks would run in has no path: ",
                       std::strerror(errno));
  }
  options.directory = folder;
  return options;
}

StatusOr<std::vector<std::string>> VariablesElsewhere(const std::vector<std::string>& command,
                                                      const std::vector<std::string>& own) {
  TENON_RETURN_IF_ERROR(CheckVariables(own));
  std::vector<std::string> variables = CarriedVariables(Environment::OfProcess());
  TENON_ASSIGN_OR_RETURN(const std::vector<std::string> token, JobTokenVariables(command));
  variables.insert(variables.end(), token.begin(), token.end());
  variables.insert(variables.end(), own.begin(), own.end());
  return variables;
}

void PrintSshLines(const std::vector<TaskPlan>& plans, const SshOptions& options,
                   const std::vector<std::string>& environment) {
  std::string host;
  for (const TaskPlan& task : plans) {
    if (task.host != host) std::printf("# on %s\n", task.host.c_str());
    host = task.host;
    std::printf("%s\n", SshLine(task, options, environment).c_str());
  }
  std::printf(
      "# tenon launch also hands over %s of this shell, and a token,\n"
      "# unless the command says who may call\n",
      std::string(CarriedNames()).c_str());
}

}  // namespace tenon::tools
