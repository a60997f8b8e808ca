// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "distributed/master/callables.h"
#include "distributed/master/cluster_graph.h"
#include "distributed/master/master_environment.h"
#include "distributed/master/partial_run.h"
#include "distributed/master/silent_tasks.h"
#include "proto/cluster_service.pb.h"
#include "proto/config.pb.h"
#include "proto/graph.pb.h"

namespace tenon {

/// Between two looks at steps that take long.
inline constexpr std::chrono::milliseconds kWatchPause{2500};

/// One client's session on the cluster: runs the steps of its graph, any number at a time, and
/// watches over their limits and their end. Thread-safe; the functions that say so block, and stop
/// waiting when their `cancellation`, which may be null, is cancelled or the session is closed: the
/// Status is then that of the cancellation.
class MasterSession : public std::enable_shared_from_this<MasterSession> {
 public:
  MasterSession(std::shared_ptr<const MasterEnvironment> environment, std::string handle,
                ConfigProto config);
  ~MasterSession();

  const std::string& handle() const { return handle_; }

  /// Take the client's graph and its extensions; see ClusterGraph. Both block.
  Status Start(const GraphDef& graph, Cancellation* cancellation);
  Status Extend(const GraphDef& graph, int64_t current_version, int64_t* new_version,
                Cancellation* cancellation);
  /// Runs a step; `call` and `cancellation` must live until `done`. Compiling a new signature
  /// blocks; call from a thread that may unless IsCompiled.
  void RunStepAsync(ClientCall* call, Cancellation* cancellation, std::function<void(Status)> done);
  /// Compiles the signature of a step. Blocks.
  Status CompileFor(const ClientCall& call, Cancellation* cancellation);
  /// Whether a step of that signature starts without blocking.
  bool IsCompiled(const ClientCall& call);
  /// Prepares a step for many runs and gives its handle; errors are those of a first RunStep.
  /// Blocks.
  StatusOr<int64_t> MakeCallable(const CallableOptions& options, Cancellation* cancellation);
  Callables& callables() { return callables_; }
  /// Prepares a step that is fed and fetched in several calls, each a RunStep with the handle that
  /// this gives. ResourceExhausted when too many are there. Blocks.
  StatusOr<std::string> SetUpPartialRun(const Signature& signature, Cancellation* cancellation);
  /// Closing happens in three steps, so that several sessions can be closed at the same time. Begin
  /// cancels what runs or waits, with `why`; later calls get it too. Wait blocks until nothing
  /// runs. Delete tells the workers. The first one to Begin closes the session: the others get
  /// false and have nothing to do.
  using WorkerDeletions = SessionTasks::WorkerDeletions;
  bool BeginClose(const Status& why);
  void WaitUntilIdle();
  void DeleteWorkerSessions(WorkerDeletions* deletions);
  /// All three. Blocks.
  void Close();
  /// Cancels, with `why`, what runs or waits, and whatever comes later. Does not block.
  void CancelAll(const Status& why);
  /// How long no call has been made and no step has run; nothing while one does.
  std::optional<Clock::Duration> Idle();
  /// Tells the workers that the session is still there, unless it is busy. Does not block.
  void TouchWorkers();
  /// To be called every kWatchPause. Asks the tasks, when a step or a call that blocks has taken so
  /// long, whether they are
  /// there; when it is called again, the environment's `notice` gets a line for each that has not
  /// answered, every kNoticePause. Does not block.
  void AskTasksOfLongStep();
  /// For people.
  void Describe(cluster::SessionStatus* out);
  /// Every device of every task of the cluster that answers. Blocks.
  Status ListDevices(std::vector<DeviceAttributes>* devices, Cancellation* cancellation);

 private:
  struct RunningCall;
  class Use;

  StatusOr<std::shared_ptr<ClusterProgram>> Compile(
      const Signature& signature, Cancellation* cancellation,
      std::shared_ptr<const FeedDependencies>* dependencies = nullptr);
  /// The error of a call that could not start. A session that is being closed is the cause of
  /// whatever the workers say then.
  Status CauseOf(const Status& error);
  /// The program that a call runs, compiled if need be; the share of a partial run that it does.
  Status FindProgram(const ClientCall& call, Cancellation* cancellation, RunningCall* running,
                     CallShare* share);
  /// Whether the session's options ask for a cost graph of the next run of `program`.
  bool WantsCosts(ClusterProgram& program) const;
  void EndCall(RunningCall* call, Status status);

  const std::shared_ptr<const MasterEnvironment> shared_environment_;
  const MasterEnvironment& environment_ = *shared_environment_;
  const std::string handle_;
  const ConfigProto config_;

  ClusterGraph graph_;
  Callables callables_;
  PartialRuns partial_runs_;
  SilentTasks silent_tasks_;

  Cancellation closing_;
  Mutex mu_;
  CondVar idle_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  int uses_ ABSL_GUARDED_BY(mu_) = 0;            // calls that block
  Clock::Time uses_begin_ ABSL_GUARDED_BY(mu_);  // of the first of them
  Clock::Time last_use_ ABSL_GUARDED_BY(mu_);
  flat_hash_map<RunningCall*, std::shared_ptr<RunningCall>> running_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
