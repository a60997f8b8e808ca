// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/cancellation.h"
#include "core/hash_map.h"
#include "core/mutex.h"
#include "core/rendezvous.h"
#include "core/resource_store.h"
#include "distributed/worker_interface.h"
#include "runtime/local_rendezvous.h"

namespace tenon {

/// What a task keeps of one step: the tensors made here, and the way to those made elsewhere. Lives
/// from the first call that names the step (which may be another task's RecvTensor) to
/// CleanupGraph. Thread-safe.
class WorkerStep final : public Rendezvous, public std::enable_shared_from_this<WorkerStep> {
 public:
  WorkerStep(int64_t step_id, std::string own_task, WorkerDirectory& workers)
      : step_id_(step_id), own_task_(std::move(own_task)), workers_(workers) {}

  Status Send(std::string_view key, Tensor value, bool dead) override {
    return local_.Send(key, std::move(value), dead);
  }
  /// Asks the task that the key names for the tensor; locally when that is this one.
  void RecvAsync(std::string_view key, RecvCallback done) override;
  /// Also ends the calls to other tasks.
  void Abort(const Status& why) override;

  /// The tensors made here.
  LocalRendezvous& local() { return local_; }
  ResourceStore& resources() { return resources_; }

 private:
  const int64_t step_id_;
  const std::string own_task_;
  WorkerDirectory& workers_;
  LocalRendezvous local_;
  ResourceStore resources_;
  Cancellation remote_calls_;
};

/// The steps a task takes part in. Thread-safe.
class StepTable {
 public:
  StepTable(std::string own_task, WorkerDirectory& workers)
      : own_task_(std::move(own_task)), workers_(workers) {}

  std::shared_ptr<WorkerStep> FindOrCreate(int64_t step_id);
  /// Forgets the step; whoever still waits in it gets Aborted.
  void Remove(int64_t step_id);
  /// Aborts the steps, and those that are still to come.
  void AbortAll(const Status& why);

 private:
  const std::string own_task_;
  WorkerDirectory& workers_;
  Mutex mu_;
  Status aborted_ ABSL_GUARDED_BY(mu_);
  flat_hash_map<int64_t, std::shared_ptr<WorkerStep>> steps_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
