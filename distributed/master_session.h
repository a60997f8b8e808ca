// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/device_name.h"
#include "core/graph.h"
#include "core/hash_map.h"
#include "core/mutex.h"
#include "distributed/clock.h"
#include "distributed/cluster_spec.h"
#include "distributed/master_step.h"
#include "distributed/worker_interface.h"
#include "proto/config.pb.h"
#include "proto/graph.pb.h"

namespace tenon {

/// What a master is made of. Everything outlives it.
struct MasterEnvironment {
  std::string task;  // its own
  ClusterSpec cluster;
  std::vector<Device*> devices;  // of its own task; the first is a CPU
  const OpRegistry* registry = nullptr;
  WorkerDirectory* workers = nullptr;
  Clock* clock = nullptr;
  /// How long a session waits for the tasks it needs to answer for the first time.
  std::chrono::milliseconds start_up_deadline{60000};
};

/// One client's graph on the cluster: placed over the tasks that it names, cut and registered once
/// a signature, run any number of steps at a time. Thread-safe; the functions that say so block.
class MasterSession : public std::enable_shared_from_this<MasterSession> {
 public:
  MasterSession(const MasterEnvironment& environment, std::string handle, ConfigProto config);
  ~MasterSession();

  const std::string& handle() const { return handle_; }

  /// Takes the first graph: imports, reaches the tasks that its nodes name, places. Blocks, at most
  /// for the start-up deadline; DeadlineExceeded then names the task, its address, the last error
  /// and which tasks are fine.
  Status Start(const GraphDef& graph);
  /// Adds nodes. Aborted when `current_version` is not the session's; on any error nothing has
  /// changed. Blocks as Start does.
  Status Extend(const GraphDef& graph, int64_t current_version, int64_t* new_version);
  /// Runs a step; `call` and `cancellation` must live until `done`. Compiling a new signature
  /// blocks; call from a thread that may unless IsCompiled.
  void RunStepAsync(RunStepCall* call, Cancellation* cancellation,
                    std::function<void(Status)> done);
  /// Whether a step of that signature starts without blocking.
  bool IsCompiled(const RunStepCall& call);
  /// Cancels the running steps, waits for them, and tells the workers. Blocks.
  void Close();
  /// Every device of every task of the cluster that answers. Blocks.
  Status ListDevices(std::vector<DeviceAttributes>* devices);

 private:
  struct RunningStep;

  bool TaskAllowed(const std::string& task) const;
  /// The tasks of the cluster that `name` may mean.
  std::vector<std::string> TasksFor(const DeviceName& name) const;
  Status ReachTasks(const Graph& graph) ABSL_EXCLUSIVE_LOCKS_REQUIRED(graph_mu_);
  Status ReachTask(const std::string& task, Clock::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(graph_mu_);
  Status OpenWorkerSession(const std::string& task, WorkerInterface& worker);
  Status Place(Graph* graph) ABSL_EXCLUSIVE_LOCKS_REQUIRED(graph_mu_);
  StatusOr<std::shared_ptr<MasterStep>> Compile(const StepSignature& signature);
  Status CheckRequestId(int64_t id);
  void EndStep(RunningStep* step, Status status);

  const MasterEnvironment& environment_;
  const std::string handle_;
  const ConfigProto config_;

  Mutex graph_mu_;  // held while compiling, which blocks
  std::unique_ptr<Graph> graph_ ABSL_GUARDED_BY(graph_mu_);
  int64_t version_ ABSL_GUARDED_BY(graph_mu_) = 0;
  std::map<std::string, std::vector<DeviceAttributes>> reached_ ABSL_GUARDED_BY(graph_mu_);

  Mutex mu_;
  CondVar idle_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  StringMap<std::shared_ptr<MasterStep>> steps_ ABSL_GUARDED_BY(mu_);
  flat_hash_map<RunningStep*, std::shared_ptr<RunningStep>> running_ ABSL_GUARDED_BY(mu_);
  flat_hash_set<int64_t> request_ids_ ABSL_GUARDED_BY(mu_);
  std::deque<int64_t> request_order_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
