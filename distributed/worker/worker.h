// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "core/device/device.h"
#include "core/memory/memory_account.h"
#include "core/op/op_registry.h"
#include "distributed/protocol/limits.h"
#include "distributed/protocol/request_ids.h"
#include "distributed/protocol/worker_interface.h"
#include "distributed/worker/group_leader.h"
#include "distributed/worker/partial_graph.h"
#include "distributed/worker/run_table.h"
#include "distributed/worker/task_groups.h"
#include "proto/cluster_service.pb.h"
#include "runtime/device/machine.h"
#include "runtime/device/thread_pool.h"
#include "runtime/execute/kernel_cache.h"
#include "runtime/execute/local_runtime.h"
#include "runtime/execute/program.h"

namespace tenon {

/// What a task is made of. Everything outlives the worker.
struct WorkerEnvironment {
  std::string task;  // "/job:J/replica:0/task:T"
  std::vector<Device*> devices;
  const OpRegistry* registry = nullptr;
  ThreadPool* pool = nullptr;
  WorkerDirectory* workers = nullptr;
  Clock* clock = nullptr;
  ServerLimits limits;
  /// Called when a master opens a session, or says that it is still there, with its task and
  /// incarnation as it gives them; may be null.
  std::function<void(const std::string& task, int64_t incarnation)> on_master;
  /// The way to the tasks of a session that brings a cluster of its own. Null: there are none.
  SessionDirectories session_directories = nullptr;
  /// Runs what may wait, such as the end of a session with iterators of its own, on a thread that
  /// may. Null: the one whose turn it is.
  std::function<Status(std::function<void()> work)> run_blocking = nullptr;
  /// The task that leads the groups of devices; empty: this one.
  std::string group_leader = {};
  Entropy* entropy = &MachineEntropy();
};

/// The worker part of a task: runs its partitions of masters' graphs and serves the tensors made
/// there. Follows TensorFlow's WorkerService. Thread-safe.
class Worker final : public WorkerInterface {
 public:
  explicit Worker(WorkerEnvironment environment);
  /// REQUIRES: Shutdown has returned. Any thread may be the last to hold a worker, one of the
  /// pool's included, so that the destructor must not wait.
  ~Worker() override;

  /// Ends the steps that run, and waits for them; later ones are not run. Blocks; not to be called
  /// on the pool.
  void Shutdown();

  /// Whether other tasks have not taken yet what groups of devices have for them.
  bool HasUntaken() const { return groups_->HasUntaken(); }
  /// Fails the groups of devices, so that other tasks do not wait for this one.
  void EndGroups(const Status& why);
  /// Forgets the sessions that nobody has used for limits.session_timeout; to be called now and
  /// then. Does not block.
  void Sweep();
  /// Since when no step has run here, and no session begun or ended; nothing while a step runs, and
  /// before the first session.
  std::optional<Clock::Time> idle_since() const {
    MutexLock lock(mu_);
    return running_ > 0 ? std::nullopt : idle_since_;
  }
  /// For people: sessions, steps, and what waits for what.
  void Describe(cluster::ServerStatusResponse* out);

  bool is_remote() const override { return false; }
  const ArrivalMemory& arrival_memory() const override { return peers_->memory; }
  void GetStatusAsync(const GetStatusRequest& request, GetStatusResponse* response,
                      Done done) override;
  void CreateWorkerSessionAsync(const CreateWorkerSessionRequest& request,
                                CreateWorkerSessionResponse* response, Done done) override;
  void DeleteWorkerSessionAsync(const DeleteWorkerSessionRequest& request,
                                DeleteWorkerSessionResponse* response, Done done) override;
  void RegisterGraphAsync(const RegisterGraphRequest& request, RegisterGraphResponse* response,
                          Done done) override;
  void DeregisterGraphAsync(const DeregisterGraphRequest& request,
                            DeregisterGraphResponse* response, Done done) override;
  void RunGraphAsync(RunGraphCall* call, Cancellation* cancellation, Done done) override;
  void RecvTensorAsync(RecvTensorCall* call, Cancellation* cancellation, Done done) override;
  void CleanupGraphAsync(const CleanupGraphRequest& request, CleanupGraphResponse* response,
                         Done done) override;
  void CleanupAllAsync(const CleanupAllRequest& request, CleanupAllResponse* response,
                       Done done) override;
  void CompleteGroupAsync(const CompleteGroupRequest& request, CompleteGroupResponse* response,
                          Cancellation* cancellation, Done done) override;
  void LoggingAsync(const LoggingRequest& request, LoggingResponse* response, Done done) override;

 private:
  /// What one master keeps here. The legacy session, with an empty handle, is always there.
  struct MasterState {
    /// Without limits: of all masters that open no session.
    MasterState() : memory(MemoryAccount::Open(MemoryAccount::kUnlimited)) {}
    explicit MasterState(const ServerLimits& limits)
        : memory(MemoryAccount::Open(limits.session_memory)), kernels(limits.graph_nodes) {}
    ~MasterState();
    const MemoryAccount::Ptr memory;
    std::shared_ptr<const TaskPeers> peers;
    std::shared_ptr<TaskGroups> groups;
    LocalRuntime runtime;
    std::shared_ptr<ResourceStore> own_resources;  // of an isolated session
    std::string master_task;
    int64_t master_incarnation = 0;
    KernelCache kernels;
    // These are guarded by the worker's mutex.
    StringMap<std::shared_ptr<const RegisteredGraph>> graphs;
    uint64_t next_graph = 1;
    int running = 0;  // steps
    Clock::Time last_use;
  };
  struct RunningGraph;

  /// A session that the request asks for: one of the task, or one with a name for it, resources and
  /// tasks of its own.
  StatusOr<std::shared_ptr<MasterState>> NewSession(const CreateWorkerSessionRequest& request);
  Status RegisterGraph(const RegisterGraphRequest& request, RegisterGraphResponse* response);
  /// Ends the steps of a session that nobody finds any more.
  void EndSession(const std::string& handle, MasterState& session);
  StatusOr<std::shared_ptr<MasterState>> FindSession(const std::string& handle);
  /// A call of a graph that runs in several.
  void RunPart(const std::shared_ptr<RunningGraph>& run);
  void FinishGraph(std::shared_ptr<RunningGraph> run, Status status);
  /// The last word on a run that has been counted.
  void EndRun(MasterState& session, const Done& done, Status status);
  /// That the tensor of that key is made here.
  Status CheckSource(const RendezvousKey& key) const;

  const WorkerEnvironment environment_;
  const LocalRuntime runtime_;
  const std::shared_ptr<const TaskPeers> peers_;
  RequestIds graph_requests_, receive_requests_;
  RunTable steps_;
  const std::shared_ptr<TaskGroups> groups_;
  GroupLeader group_leader_;
  mutable Mutex mu_;
  CondVar idle_;
  int running_ ABSL_GUARDED_BY(mu_) = 0;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<Clock::Time> idle_since_ ABSL_GUARDED_BY(mu_);  // after the last use
  StringMap<std::shared_ptr<MasterState>> sessions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
