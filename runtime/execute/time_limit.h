// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <thread>

#include "core/base/cancellation.h"
#include "core/base/mutex.h"

namespace tenon {

/// While it lives, a thread of its own waits, which cancels `cancellation` with `why` when `limit`
/// has passed. The constructor throws std::system_error when the system has no thread to give.
class TimeLimit {
 public:
  /// `cancellation` must outlive it.
  TimeLimit(Cancellation& cancellation, std::chrono::milliseconds limit, Status why);
  ~TimeLimit();

 private:
  void Wait(std::chrono::steady_clock::time_point end);

  Cancellation& cancellation_;
  const Status why_;
  Mutex mu_;
  CondVar cv_;
  bool over_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace tenon
