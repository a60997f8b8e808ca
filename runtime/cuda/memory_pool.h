// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>

#include "core/base/mutex.h"
#include "core/device/device_plugin.h"
#include "runtime/cuda/failure.h"

namespace tenon::cuda {

/// The memory of one GPU for tensors: a pool of the driver's, which gives memory in the order of
/// streams, grows when it has none left and keeps what is freed. Thread-safe; the calling thread's
/// current device must be the pool's.
class MemoryPool {
 public:
  /// ResourceExhausted when all is to be taken at once and cannot; Unimplemented where the driver
  /// has no pools. `failure` must outlive it.
  static StatusOr<std::unique_ptr<MemoryPool>> Make(int ordinal, const GpuOptions& options,
                                                    cudaStream_t stream, Failure& failure);
  ~MemoryPool();

  /// For work queued on `stream` from now on. Null when there is none, or the GPU has failed.
  void* Allocate(size_t bytes, cudaStream_t stream);
  /// The bytes that were asked for.
  void Free(void* memory, size_t bytes, cudaStream_t stream);

  /// Lets the GPU `ordinal` reach the memory if the two are wired so; if not, the driver takes
  /// copies between them through the host.
  void Admit(int ordinal);

  /// The most that tensors may take.
  int64_t limit() const { return limit_; }
  /// For people: what the GPU holds, and who.
  std::string Describe() const;

 private:
  MemoryPool(int ordinal, cudaMemPool_t pool, int64_t limit, Failure& failure)
      : ordinal_(ordinal), pool_(pool), limit_(limit), failure_(failure) {}
  cudaError_t AllocateNow(void** memory, size_t bytes, cudaStream_t stream);
  Status TakeAll(cudaStream_t stream);
  int64_t Attribute(cudaMemPoolAttr attribute) const;

  const int ordinal_;
  const cudaMemPool_t pool_;
  const int64_t limit_;
  Failure& failure_;
  std::atomic<int64_t> used_{0};
  Mutex waiting_mu_;  // held while the pool may make streams wait for each other
  Mutex admitted_mu_;
  std::set<int> admitted_ ABSL_GUARDED_BY(admitted_mu_);  // whether or not it could be done
};

}  // namespace tenon::cuda
