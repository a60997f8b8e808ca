// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <memory>
#include <string>

#include "core/device/device_plugin.h"
#include "runtime/accelerator/stream_driver.h"
#include "runtime/cuda/completions.h"
#include "runtime/cuda/failure.h"
#include "runtime/cuda/memory_pool.h"
#include "runtime/cuda/staging.h"

namespace tenon::cuda {

/// One GPU through CUDA's runtime: a memory pool and three streams that do not wait for each other
/// unless they are told to. Making it makes the GPU's context. Every function makes the GPU the
/// current device of the calling thread, Native too, so that a kernel which has asked for its
/// stream can be launched. Thread-safe.
class CudaDriver final : public StreamDriver {
 public:
  /// The GPU `ordinal` of CUDA's runtime, which messages call `gpu`. Unavailable, with CUDA's
  /// reason, when it cannot be used; ResourceExhausted when its memory is to be taken at once and
  /// is not there.
  static StatusOr<std::unique_ptr<CudaDriver>> Make(int ordinal, std::string gpu,
                                                    const GpuOptions& options);
  /// Waits for what is queued. REQUIRES: all memory has been given back.
  ~CudaDriver() override;

  void* Allocate(Stream stream, size_t bytes) override;
  void Free(void* memory, size_t bytes) override;
  void* AllocatePinned(size_t bytes) override;
  void FreePinned(void* memory, size_t bytes) override;
  void Copy(Stream stream, void* to, const void* from, size_t bytes) override;
  void CopyToPeer(Stream stream, StreamDriver& peer, Stream other, void* to, const void* from,
                  size_t bytes) override;
  void WaitFor(Stream stream, Stream other) override;
  void CallWhenDone(Stream stream, std::function<void(const Status&)> done) override;
  StatusOr<std::unique_ptr<DriverCapture>> Capture() override;
  void* Native(Stream stream) override;
  std::string DescribeMemory() override;

  /// The GPU's number for CUDA's runtime, and what messages call it.
  int ordinal() const { return ordinal_; }
  const std::string& gpu() const { return failure_.gpu(); }
  /// The most that tensors may take.
  int64_t memory_limit() const { return pool_->limit(); }

 private:
  static constexpr size_t kStreams = 3;

  /// A stream, and what only makes sense for one.
  struct Queue {
    cudaStream_t stream = nullptr;
    std::unique_ptr<Completions> completions;
    std::unique_ptr<Staging> staging;
    Mutex mu;
    cudaEvent_t reached ABSL_GUARDED_BY(mu) = nullptr;  // for those that wait for it
  };

  CudaDriver(int ordinal, std::string gpu) : ordinal_(ordinal), failure_(std::move(gpu)) {}
  Status Start(const GpuOptions& options);
  /// What is queued on `stream` from now on waits for what is on `queue` of `driver` until now.
  void WaitForQueue(Stream stream, CudaDriver& driver, Queue& queue);
  Queue& At(Stream stream) { return queues_[static_cast<size_t>(stream)]; }
  void Enter();

  const int ordinal_;
  Failure failure_;
  std::array<Queue, kStreams> queues_;
  std::unique_ptr<MemoryPool> pool_;
};

}  // namespace tenon::cuda
