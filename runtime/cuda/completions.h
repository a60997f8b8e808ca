// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "runtime/cuda/failure.h"

namespace tenon::cuda {

/// Calls back when what is queued on one stream is done: at once, on the caller's thread, when it
/// is already and nobody else waits; else from a thread of its own, in the order of the calls. That
/// thread asks for a moment before it sleeps, since most steps on a GPU are short. Thread-safe.
class Completions {
 public:
  /// `stream`, of the GPU `ordinal`, and `failure` must outlive it.
  Completions(int ordinal, cudaStream_t stream, Failure& failure);
  /// Waits for what is queued, and for the calls.
  ~Completions();

  /// `done` gets the GPU's failure, if any.
  void Add(std::function<void(const Status&)> done);

 private:
  struct Pending {
    cudaEvent_t event;  // null when it could not be recorded
    std::function<void(const Status&)> done;
  };

  bool StreamIsDone();
  cudaEvent_t RecordEvent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// The oldest call whose time has not come yet; false when the object ends.
  bool Next(Pending* next);
  void WaitFor(cudaEvent_t event);
  void Run();

  const int ordinal_;
  const cudaStream_t stream_;
  Failure& failure_;
  Mutex mu_;
  CondVar changed_;
  std::deque<Pending> pending_ ABSL_GUARDED_BY(mu_);
  std::vector<cudaEvent_t> free_events_ ABSL_GUARDED_BY(mu_);
  /// Calls that have not returned, those in pending_ among them.
  size_t outstanding_ ABSL_GUARDED_BY(mu_) = 0;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  /// The size of pending_, for the thread that looks without the lock.
  std::atomic<size_t> num_pending_{0};
  std::thread thread_;  // last: it uses the others
};

}  // namespace tenon::cuda
