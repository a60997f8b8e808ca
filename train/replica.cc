// SPDX-License-Identifier: Apache-2.0
#include "train/replica.h"

#include <chrono>

#include "core/device_name.h"

namespace tenon {
namespace {

constexpr std::chrono::minutes kWorkerTimeout{5};

void Notice(const ServerOptions& options, const std::string& line) {
  if (options.notice) options.notice(line);
}

}  // namespace

Status RunReplica(const ServerOptions& options, const OpRegistry& registry,
                  const std::function<Status(Server& server)>& train) {
  TENON_ASSIGN_OR_RETURN(const std::unique_ptr<Server> server, Server::Start(options, registry));
  if (options.job == "ps") {
    std::string addresses;
    for (int task = 0; task < options.cluster.NumTasks("worker"); ++task) {
      TENON_ASSIGN_OR_RETURN(const std::string address, options.cluster.Address("worker", task));
      StrAppend(&addresses, task == 0 ? "" : ",", address);
    }
    Notice(options, StrCat("waiting for the workers at ", addresses, " to end"));
    return server->WaitForJobEnd("worker", kWorkerTimeout);
  }
  const Status status = train(*server);
  if (!status.ok()) {
    Notice(options, StrCat("this worker failed, which the parameter servers are told: ",
                           status.ToString()));
  }
  server->ReportEnd("ps", status);
  return status;
}

DeviceFunction ReplicaDeviceSetter(const Server& server) {
  const DeviceName own = *DeviceName::Parse(server.task());
  return ReplicaDeviceSetter({.ps_tasks = server.cluster().NumTasks("ps"),
                              .worker_device = StrCat("/job:", *own.job, "/task:", *own.task)});
}

}  // namespace tenon
