// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/status.h"
#include "core/op/run.h"
#include "core/tensor/tensor.h"
#include "distributed/protocol/arrival_memory.h"
#include "distributed/protocol/cluster_spec.h"
#include "proto/step_stats.pb.h"
#include "proto/worker.pb.h"

namespace tenon {

/// One run of a registered graph. Tensors stay tensors, so that a call inside the process copies
/// nothing; the transport turns them into a RunGraphRequest and back.
struct RunGraphCall {
  std::string session_handle;
  std::string graph_handle;
  int64_t step_id = 0;
  /// Values fed to the step and the keys of those it gives, as rendezvous keys.
  std::vector<std::pair<std::string, Tensor>> send;
  std::vector<std::string> recv_keys;
  RunSettings settings;
  /// One of several calls of a step with this step_id: the graph runs from the first one on, each
  /// feeds and takes some values, and the last one waits for its end.
  bool is_partial = false;
  bool is_last_partial_run = false;
  int64_t request_id = 0;  // 0: not checked for repetition

  /// Filled by the worker, in the order of recv_keys.
  std::vector<Tensor> received;
  StepStats step_stats;
};

/// One tensor of a step, asked of the worker that makes it.
struct RecvTensorCall {
  int64_t step_id = 0;
  std::string key;
  int64_t request_id = 0;  // 0: not checked for repetition
  /// The host memory that a plain tensor goes into which comes over the network; not null.
  Allocator* memory = &CpuAllocator();

  Tensor tensor = {};
  bool is_dead = false;
};

/// What a task does for masters and for other tasks (WorkerService). The implementation in the
/// process and the one over the network cannot be told apart. Thread-safe. Requests, responses and
/// calls must live until `done`, which is called exactly once, from any thread, and must not block.
class WorkerInterface {
 public:
  using Done = std::function<void(Status)>;

  virtual ~WorkerInterface() = default;

  /// False for the worker in this process.
  virtual bool is_remote() const { return true; }
  /// Where a server puts the tensors that come with calls of this worker, if it is in the process.
  virtual const ArrivalMemory& arrival_memory() const {
    static const ArrivalMemory ordinary;
    return ordinary;
  }

  virtual void GetStatusAsync(const GetStatusRequest& request, GetStatusResponse* response,
                              Done done) = 0;
  virtual void CreateWorkerSessionAsync(const CreateWorkerSessionRequest& request,
                                        CreateWorkerSessionResponse* response, Done done) = 0;
  virtual void DeleteWorkerSessionAsync(const DeleteWorkerSessionRequest& request,
                                        DeleteWorkerSessionResponse* response, Done done) = 0;
  virtual void RegisterGraphAsync(const RegisterGraphRequest& request,
                                  RegisterGraphResponse* response, Done done) = 0;
  virtual void DeregisterGraphAsync(const DeregisterGraphRequest& request,
                                    DeregisterGraphResponse* response, Done done) = 0;
  /// `cancellation` ends the step early; it must live until `done`.
  virtual void RunGraphAsync(RunGraphCall* call, Cancellation* cancellation, Done done) = 0;
  virtual void RecvTensorAsync(RecvTensorCall* call, Cancellation* cancellation, Done done) = 0;
  virtual void CleanupGraphAsync(const CleanupGraphRequest& request, CleanupGraphResponse* response,
                                 Done done) = 0;
  virtual void CleanupAllAsync(const CleanupAllRequest& request, CleanupAllResponse* response,
                               Done done) = 0;
  /// Answers when all members of the group have asked; `cancellation`, which must live until
  /// `done`, ends the wait. Only the task that leads groups is asked.
  virtual void CompleteGroupAsync(const CompleteGroupRequest& request,
                                  CompleteGroupResponse* response, Cancellation* cancellation,
                                  Done done) = 0;
  virtual void LoggingAsync(const LoggingRequest& request, LoggingResponse* response,
                            Done done) = 0;
};

/// Finds the worker of a task. Thread-safe.
class WorkerDirectory {
 public:
  virtual ~WorkerDirectory() = default;
  /// `task` is "/job:J/replica:R/task:T". NotFound when the cluster has no such task. Connecting
  /// happens on the first call; a task that cannot be reached fails its calls with Unavailable,
  /// naming task and address.
  virtual StatusOr<std::shared_ptr<WorkerInterface>> Get(const std::string& task) = 0;
  /// Where the task listens, for messages.
  virtual std::string Address(const std::string& task) const = 0;
};

/// Makes the directory of a session's own cluster, in which this process is `own_task`, a task's
/// name, or none when that is empty. Does not block. PermissionDenied for addresses that sessions
/// may not choose, ResourceExhausted when there are too many clusters.
using SessionDirectories = std::function<StatusOr<std::shared_ptr<WorkerDirectory>>(
    const ClusterSpec& cluster, const std::string& own_task)>;

}  // namespace tenon
