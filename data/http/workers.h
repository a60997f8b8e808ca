// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/status.h"

namespace tenon {

/// Threads for work that mostly waits for servers: started when they are needed, at most so many.
/// Thread-safe.
class Workers {
 public:
  explicit Workers(size_t most) : most_(most) {}
  /// Waits for all work.
  ~Workers();

  /// Has a thread run `work`, which waits for no other work, in the order of the calls.
  /// ResourceExhausted, and it is not run, where the system gives no thread.
  Status Run(std::function<void()> work);

 private:
  void Loop();

  const size_t most_;
  Mutex mu_;
  CondVar changed_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mu_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mu_);
  size_t idle_ ABSL_GUARDED_BY(mu_) = 0;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace tenon
