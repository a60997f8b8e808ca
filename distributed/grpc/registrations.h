// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "proto/registration_service.pb.h"

namespace tenon {

/// The tasks that have registered for one job. Those that name a task get it, those that name a job
/// the first free ones of that, and the others what is left, parameter servers first, in the order
/// in which they came. Thread-safe.
class Registrations {
 public:
  /// A process that has said nothing for so long is gone, unless all had come.
  static constexpr std::chrono::seconds kLease{5};

  /// `clock` must outlive it. The first task says how large the job is.
  explicit Registrations(Clock& clock) : clock_(clock) {}

  /// Takes note of a task, and answers. InvalidArgument when it contradicts the others or asks for
  /// a task that there is not, AlreadyExists when another process has that task,
  /// FailedPrecondition when all tasks of the job have come before it.
  Status Register(const cluster::RegisterTaskRequest& request,
                  cluster::RegisterTaskResponse* response);
  /// Whether all have come and each has been told so.
  bool all_know() const;

 private:
  struct Task {
    cluster::RegisterTaskRequest request;
    Clock::Time seen;
    bool knows = false;
    std::string job;  // as below, once all have come
    int index = 0;
  };

  Status Check(const cluster::RegisterTaskRequest& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status CheckRoom(const cluster::RegisterTaskRequest& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetSilent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Assign() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int size() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return num_ps_ + num_workers_; }

  Clock& clock_;
  mutable Mutex mu_;
  int num_ps_ ABSL_GUARDED_BY(mu_) = 0, num_workers_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mu_);  // as they came
  bool complete_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace tenon
