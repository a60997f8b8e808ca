// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/cancellation.h"
#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace tenon {

/// What runs now on the devices of a session or task, so that its end can end it. Thread-safe.
class RunningCalls {
 public:
  /// A step, which is to be removed at its end by a thread that cancels nothing. After
  /// CloseAndWait, its error.
  Status AddStep(Cancellation* step);
  void RemoveStep(Cancellation* step);

  /// A call of a function, which ends when `closing` is cancelled, and calls EndFunction, from any
  /// thread. After CloseAndWait, its error.
  Status BeginFunction();
  void EndFunction();
  Cancellation& closing() { return closing_; }

  /// After CloseAndWait, its error.
  Status CheckOpen();
  /// Cancels what runs with `why` and waits for its end; what comes later gets `closed`.
  void CloseAndWait(const Status& why, const Status& closed);

 private:
  Mutex mu_;
  CondVar no_steps_;
  Status closed_ ABSL_GUARDED_BY(mu_);
  flat_hash_set<Cancellation*> steps_ ABSL_GUARDED_BY(mu_);

  Cancellation closing_;
  // A lock of their own: calls may end while a step is cancelled.
  Mutex functions_mu_;
  CondVar no_functions_;
  Status functions_closed_ ABSL_GUARDED_BY(functions_mu_);
  int functions_ ABSL_GUARDED_BY(functions_mu_) = 0;
};

}  // namespace tenon
