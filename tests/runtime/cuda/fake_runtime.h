// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

// CUDA's runtime as far as Tenon calls it, without a GPU: the tests link it in the place of the
// real one. A stream is a thread that does what is queued, one after another; memory of the GPU is
// the host's, whose bytes are set when it is given out and when it is taken back.

namespace tenon::fake {

/// The GPUs of the fake, and the memory of both together.
inline constexpr int kGpus = 2;
inline constexpr int64_t kTotalMemory = int64_t{1} << 30;

/// Queues a wait on `stream`, until Open.
class Gate {
 public:
  explicit Gate(cudaStream_t stream);
  ~Gate() { Open(); }
  void Open();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

/// From now on everything that is queued or asked fails with `error`; cudaSuccess ends that.
void FailWith(cudaError_t error);

/// From now on allocations of pinned memory fail, and nothing else; `false` ends that.
void FailPinnedMemory(bool fails);

/// The next capture of a stream ends with that error.
void FailNextCapture(cudaError_t error);

/// Calls of cudaMemcpyAsync with memory that is not pinned, which a driver would wait for.
int64_t PageableCopies();

/// Calls of cudaMemcpyPeerAsync between memory of the GPUs that they name, into a pool that lets
/// the other GPU in; and other ones.
struct PeerCopies {
  int64_t right, wrong;
};
PeerCopies CountPeerCopies();

/// The bytes that the GPUs have in use.
int64_t BytesInUse();

}  // namespace tenon::fake
