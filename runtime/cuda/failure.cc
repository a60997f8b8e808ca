// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/failure.h"

namespace tenon::cuda {

bool Failure::Check(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return true;
  cudaGetLastError();
  MutexLock lock(mu_);
  if (status_.ok()) {
    status_ = Internal("the GPU ", gpu_, " failed: ", cudaGetErrorString(error), " (",
                       cudaGetErrorName(error), "), as was found when ", what);
    failed_.store(true, std::memory_order_release);
  }
  return false;
}

Status Failure::status() const {
  if (!failed()) return OkStatus();
  MutexLock lock(mu_);
  return status_;
}

}  // namespace tenon::cuda
