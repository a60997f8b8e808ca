// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <string>
#include <string_view>

#include "core/base/mutex.h"
#include "core/base/status.h"

namespace tenon::cuda {

/// The first failure of a GPU, which is for good: CUDA gives the same error to every call from then
/// on. Thread-safe.
class Failure {
 public:
  /// `gpu` is how messages call it.
  explicit Failure(std::string gpu) : gpu_(std::move(gpu)) {}

  /// Keeps `error` if it is the first; `what` was being done, which need not be its cause. Whether
  /// it is no error. The calling thread's last error is forgotten, so that nobody takes it for one
  /// of a kernel.
  bool Check(cudaError_t error, std::string_view what);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// OK, or Internal "the GPU ... failed: ...".
  Status status() const;
  const std::string& gpu() const { return gpu_; }

 private:
  const std::string gpu_;
  std::atomic<bool> failed_{false};
  mutable Mutex mu_;
  Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon::cuda
