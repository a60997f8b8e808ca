// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>

#include "core/mutex.h"

namespace tenon {

/// Runs what may wait for other tasks on threads of its own, so that gRPC's few threads never
/// block. Calls are rare: opening sessions, compiling signatures. Thread-safe.
class BlockingCalls {
 public:
  /// Waits for what runs.
  ~BlockingCalls() {
    MutexLock lock(mu_);
    while (running_ > 0) idle_.Wait(mu_);
  }

  void Run(std::function<void()> call) {
    {
      MutexLock lock(mu_);
      ++running_;
    }
    std::thread([this, call = std::move(call)] {
      call();
      MutexLock lock(mu_);
      if (--running_ == 0) idle_.NotifyAll();
    }).detach();
  }

 private:
  Mutex mu_;
  CondVar idle_;
  int running_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace tenon
