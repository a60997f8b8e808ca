// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/device/device_name.h"
#include "core/graph/graph.h"
#include "distributed/master/master_environment.h"
#include "distributed/protocol/worker_calls.h"
#include "proto/config.pb.h"

namespace tenon {

/// The tasks of one master session: those that its graph needs, and the worker sessions there. For
/// one thread at a time; everything given to the constructor outlives it.
class SessionTasks {
 public:
  using Devices = std::map<std::string, std::vector<DeviceAttributes>>;  // by task
  using WorkerDeletions = WorkerCalls<DeleteWorkerSessionRequest, DeleteWorkerSessionResponse>;

  /// `handle` is the session's. The device filters of `config` say which tasks may be used.
  SessionTasks(const MasterEnvironment& environment, const std::string& handle,
               const ConfigProto& config)
      : environment_(environment), handle_(handle), config_(config) {}

  /// The tasks that the devices of the nodes from `first_id` on name, and the master's own.
  StatusOr<std::set<std::string>> Wanted(const Graph& graph, int first_id) const;
  /// The tasks that the session may use.
  std::set<std::string> All() const;

  /// Opens worker sessions at the tasks that have none yet, as soon as they answer. Blocks, at most
  /// for the start-up deadline; DeadlineExceeded then names the tasks, an address, the last error
  /// and which tasks are fine. On `cancellation`: its Status.
  Status Reach(const std::set<std::string>& tasks, Cancellation* cancellation);
  /// The devices of the tasks that have been reached.
  const Devices& reached() const { return reached_; }

  /// Tells the tasks that the session is still there. Does not block.
  void Touch();
  /// Starts to delete the worker sessions.
  void Delete(WorkerDeletions* deletions);

 private:
  bool TaskAllowed(const std::string& task) const;
  /// The tasks of the cluster that `name` may mean.
  std::vector<std::string> TasksFor(const DeviceName& name) const;
  CreateWorkerSessionRequest SessionRequest(const std::string& task) const;
  Status Open(const Devices& answered, Cancellation* cancellation);
  Status Late(const std::map<std::string, Status>& late) const;

  const MasterEnvironment& environment_;
  const std::string& handle_;
  const ConfigProto& config_;
  Devices reached_;
  /// Tasks that may have a session of ours, reached or not.
  std::set<std::string> opened_;
};

}  // namespace tenon
