// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>

#include "core/base/mutex.h"
#include "runtime/cuda/failure.h"

namespace tenon::cuda {

/// Copies between host memory that is not pinned and the GPU, in the order of one stream, through
/// pinned memory of its own. The driver itself would wait for the stream, and keep the calling
/// thread. Small values are copied aside before Copy returns; of others a thread of the driver
/// brings one piece after another when the stream has come there, so that both ends must live until
/// then. Pieces go through two lanes in turn: while the GPU copies one, the host copies the next.
/// Thread-safe; the calling thread's current device must be the stream's.
class Staging {
 public:
  Staging(cudaStream_t stream, Failure& failure) : stream_(stream), failure_(failure) {}
  /// REQUIRES: what was queued is done.
  ~Staging();

  void ToDevice(void* device, const void* host, size_t bytes);
  void ToHost(void* host, const void* device, size_t bytes);

 private:
  static constexpr size_t kSlotBytes = 64 << 10;
  static constexpr size_t kSlots = 32;
  static constexpr size_t kPieceBytes = 4 << 20;

  /// A piece of pinned memory, used in the order of a stream of its own.
  struct Lane {
    cudaStream_t stream = nullptr;
    cudaEvent_t done = nullptr;
    char* piece = nullptr;
  };

  bool Prepare() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool PrepareLanes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Queues copy(lane, at, size) for each piece of `bytes`, behind what the stream has, which goes
  /// on behind them.
  template <typename Copy>
  void ForEachPiece(size_t bytes, Copy copy) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Whether a small value has been copied aside and queued.
  bool UseSlot(void* device, const void* host, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Queues a copy on the host.
  bool QueueHostCopy(cudaStream_t stream, void* to, const void* from, size_t bytes);

  const cudaStream_t stream_;
  Failure& failure_;
  Mutex mu_;
  /// kSlots small blocks, each with an event after its last use, then the lanes' pieces.
  char* pinned_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::array<cudaEvent_t, kSlots> used_ ABSL_GUARDED_BY(mu_) = {};
  size_t next_ ABSL_GUARDED_BY(mu_) = 0;
  std::array<Lane, 2> lanes_ ABSL_GUARDED_BY(mu_) = {};
  /// Recorded where the stream has come when pieces begin.
  cudaEvent_t begin_ ABSL_GUARDED_BY(mu_) = nullptr;
};

}  // namespace tenon::cuda
