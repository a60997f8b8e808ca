// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "core/device/device_queue.h"
#include "core/op/kernel.h"

// What CUDA kernels of ops are queued with. Everything goes to the device's one stream of kernels,
// in order; nothing waits.

namespace tenon::cuda {

inline cudaStream_t StreamOf(const KernelContext& ctx) {
  return static_cast<cudaStream_t>(ctx.device().queue()->stream());
}

/// The Status of something that was to be queued.
inline Status QueueStatus(cudaError_t error) {
  return error == cudaSuccess ? OkStatus()
                              : Internal("cannot queue a kernel: ", cudaGetErrorString(error));
}
/// The error of the launch before, if it could not be queued.
inline Status LaunchStatus() { return QueueStatus(cudaGetLastError()); }

inline constexpr int kBlockThreads = 256;

/// How many blocks go over `n` elements in strides of the whole grid.
inline int GridBlocks(int64_t n) {
  constexpr int64_t kMostBlocks = 132 * 16;
  return static_cast<int>(
      std::clamp<int64_t>((n + kBlockThreads - 1) / kBlockThreads, 1, kMostBlocks));
}

template <typename F>
__global__ void __launch_bounds__(kBlockThreads) ForEachKernel(int64_t n, F f) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += stride) {
    f(i);
  }
}

/// Queues f(i) for every i in [0, n). `f` is a functor with a __device__ call operator (a named
/// struct whose members are plain: pointers, sizes).
template <typename F>
Status ForEach(const KernelContext& ctx, int64_t n, const F& f) {
  if (n <= 0) return OkStatus();
  ForEachKernel<<<GridBlocks(n), kBlockThreads, 0, StreamOf(ctx)>>>(n, f);
  return LaunchStatus();
}

}  // namespace tenon::cuda
