// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <functional>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace tenon {

/// Runs what may wait for other tasks on threads of its own, so that the few that poll never block:
/// opening sessions, compiling signatures. At most kMaxThreads run at once, and kMaxWaiting wait
/// for a thread; one without work ends after kIdle. Thread-safe.
class BlockingCalls {
 public:
  static constexpr int kMaxThreads = 64;
  static constexpr size_t kMaxWaiting = 4096;
  static constexpr std::chrono::seconds kIdle{1};

  /// `clock` must outlive it.
  explicit BlockingCalls(Clock& clock) : clock_(clock) {}
  /// Waits for what runs or waits.
  ~BlockingCalls();

  /// ResourceExhausted when too many calls wait already, or when the system gives no thread: then
  /// `call` does not run. It must throw nothing.
  Status Run(std::function<void()> call);

 private:
  void Work();

  Clock& clock_;
  Mutex mu_;
  CondVar changed_;
  CondVar none_left_;
  int threads_ ABSL_GUARDED_BY(mu_) = 0;
  size_t idle_ ABSL_GUARDED_BY(mu_) = 0;  // of the threads
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<std::function<void()>> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
