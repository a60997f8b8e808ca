// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "core/base/cancellation.h"
#include "core/base/clock.h"
#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "core/device/rendezvous.h"
#include "core/op/run.h"
#include "core/tensor/resource_store.h"
#include "distributed/protocol/worker_interface.h"
#include "distributed/worker/transfer_log.h"
#include "proto/cluster_service.pb.h"
#include "runtime/execute/local_rendezvous.h"

namespace tenon {

class PartialGraph;

/// A task's name in a session, its way to the session's other tasks, and where it puts what comes
/// from them.
struct TaskPeers {
  std::string task;
  std::string leader;  // of groups of devices
  std::shared_ptr<WorkerDirectory> workers;
  ArrivalMemory memory;
};

/// What a task keeps of one step: the tensors made here, and the way to those made elsewhere.
/// Thread-safe.
class TaskRun final : public Rendezvous, public std::enable_shared_from_this<TaskRun> {
 public:
  TaskRun(int64_t step_id, TransferLog& transfers, Clock::Time begin)
      : step_id_(step_id), transfers_(transfers), begin_(begin) {}

  /// Before the first RecvAsync.
  void SetPeers(std::shared_ptr<const TaskPeers> peers) { peers_ = std::move(peers); }

  Status Send(std::string_view key, Tensor value, bool dead) override {
    return local_.Send(key, std::move(value), dead);
  }
  /// Asks the task that the key names for the tensor; locally when that is this one.
  void RecvAsync(std::string_view key, RecvCallback done) override;
  /// Also ends the calls to other tasks.
  void Abort(const Status& why) override;

  /// `callback` runs when the step is aborted, perhaps at once; it is kept as long as the step.
  void OnAbort(const Cancellation::Callback& callback);
  /// The partition that runs in several calls; made by `make` when there is none yet.
  std::shared_ptr<PartialGraph> FindOrMakePartial(
      const std::function<std::shared_ptr<PartialGraph>()>& make);

  /// Whether something was sent that nobody has received.
  bool HasUntaken() { return local_.HasUntaken(); }
  /// For people: what waits here.
  void Describe(Clock::Time now, cluster::StepStatus* out);

  /// Gives a tensor that was made here to somebody outside of the run's partitions, as RecvAsync
  /// does within them: InvalidArgument for one in the memory of a device, which is for them alone.
  /// A tensor that follows a variable gets the value that this has now (Tensor::Settle).
  void HandOutAsync(std::string_view key, RecvCallback done);
  /// The same of a tensor that is there already; NotFound when it is not.
  Status HandOut(std::string_view key, Tensor* value, bool* dead);
  /// The run of this task's partition: what it needs from here, `cancellation`, `groups`, and
  /// `memory`, which may be null. It must not outlive any of these.
  ProgramRun MakeRun(const RunSettings& settings, Cancellation& cancellation, MemoryAccount* memory,
                     RunTrace* trace, DeviceGroups& groups) {
    RunTrace* const wanted = settings.trace ? trace : nullptr;
    return {settings, &cancellation, this, &resources_, memory, wanted, nullptr, &groups};
  }

 private:
  /// A receive from another task is over.
  void EndRemote(const void* recv);
  /// One that began then has come.
  void LogTransfer(const RecvTensorCall& call, int64_t begin_ns);

  const int64_t step_id_;
  TransferLog& transfers_;
  std::shared_ptr<const TaskPeers> peers_;
  const Clock::Time begin_;
  LocalRendezvous local_;
  ResourceStore resources_;
  Cancellation remote_calls_;
  Mutex mu_;
  flat_hash_map<const void*, std::string> remote_keys_ ABSL_GUARDED_BY(mu_);  // asked of others
  std::shared_ptr<PartialGraph> partial_ ABSL_GUARDED_BY(mu_);
};

/// The session of the steps in which groups of devices meet, which no master runs.
inline constexpr char kGroupSession[] = "groups of devices";

/// The steps a task takes part in. A step is here from its RunGraph to its clean-up, or the end of
/// its session; before that while receives wait in it, which may come first. Ids of steps that have
/// been cleaned up are remembered for a while: what comes late for them is refused. Thread-safe.
class RunTable {
 public:
  /// The limit of receives that wait at once.
  static constexpr size_t kMaxReceives = 1 << 18;
  /// The limit of masters' steps that run, or have run and not been cleaned up.
  static constexpr size_t kMaxRuns = 1 << 18;

  /// `clock` must outlive it.
  RunTable(std::string own_task, Clock& clock) : own_task_(std::move(own_task)), clock_(clock) {}

  /// The step, for a RunGraph of `session`. Aborted when it has been cleaned up; ResourceExhausted
  /// when too many run.
  StatusOr<std::shared_ptr<TaskRun>> Run(int64_t step_id, const std::string& session,
                                         std::shared_ptr<const TaskPeers> peers);
  /// The step, for a receive, which counts until EndReceive. Aborted as Run; ResourceExhausted when
  /// too many wait.
  StatusOr<std::shared_ptr<TaskRun>> BeginReceive(int64_t step_id);
  void EndReceive(int64_t step_id);
  /// Forgets the step; whoever still waits in it gets Aborted.
  void Remove(int64_t step_id);
  /// The same for all steps of a session.
  void RemoveSession(const std::string& session);
  /// Aborts the steps, and those that are still to come.
  void AbortAll(const Status& why);

  /// What the steps receive from other tasks.
  TransferLog& transfers() { return transfers_; }

  /// For people: the steps and what waits in them.
  void Describe(Clock::Time now, cluster::ServerStatusResponse* out);

 private:
  struct Entry {
    std::shared_ptr<TaskRun> step;
    std::string session;
    bool runs = false;    // a RunGraph has come
    size_t receives = 0;  // that wait
  };

  StatusOr<Entry*> FindOrCreate(int64_t step_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Remember(int64_t step_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string own_task_;  // for messages
  Clock& clock_;
  TransferLog transfers_;
  Mutex mu_;
  Status aborted_ ABSL_GUARDED_BY(mu_);
  flat_hash_map<int64_t, Entry> steps_ ABSL_GUARDED_BY(mu_);
  size_t receives_ ABSL_GUARDED_BY(mu_) = 0;
  size_t runs_ ABSL_GUARDED_BY(mu_) = 0;  // the entries that run
  flat_hash_set<int64_t> ended_ ABSL_GUARDED_BY(mu_);
  std::deque<int64_t> ended_order_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
