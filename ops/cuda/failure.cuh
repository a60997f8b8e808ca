// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/cuda/launch.cuh"

// How kernels of the GPU say that they have failed, and ask whether another of their step has.

namespace tenon::cuda {

/// Notes `value`, which is not 0, as what is wrong; of several it is any.
__device__ inline void NoteFailure(StepCheck check, uint64_t value) {
  atomicExch(reinterpret_cast<unsigned long long*>(check.word),
             static_cast<unsigned long long>(value));
  // The host looks for the word when it finds the step's.
  __threadfence_system();
  *static_cast<volatile uint64_t*>(check.failure->word) = 1;
}

/// Whether a kernel that was queued earlier has noted a failure of the step, where `failure` is
/// DeviceQueue::FailureOf's. All threads of a block must call it: one reads, since the word is in
/// the host's memory.
__device__ inline bool StepHasFailed(const StepFailure* failure) {
  if (failure == nullptr) return false;
  const bool failed =
      threadIdx.x == 0 && *static_cast<const volatile uint64_t*>(failure->word) != 0;
  return __syncthreads_or(failed ? 1 : 0) != 0;
}

/// The word that says whether the running step has failed; null where it cannot.
inline const StepFailure* FailureOf(const KernelContext& ctx) {
  return ctx.device().queue()->FailureOf(ctx.step().step_id);
}

template <typename F>
__global__ void __launch_bounds__(kBlockThreads)
    UpdateEachKernel(int64_t n, const StepFailure* failure, F f) {
  const bool failed = StepHasFailed(failure);
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += stride) {
    if (!failed) {
      f(i);
    } else if constexpr (requires { f.Keep(i); }) {
      f.Keep(i);
    }
  }
}

/// ForEach for what outlives the step: when that has failed, f.Keep(i) takes the place of f(i),
/// where `f` has it.
template <typename F>
Status UpdateEach(const KernelContext& ctx, int64_t n, const F& f) {
  if (n <= 0) return OkStatus();
  UpdateEachKernel<<<GridBlocks(n), kBlockThreads, 0, StreamOf(ctx)>>>(n, FailureOf(ctx), f);
  return LaunchStatus();
}

}  // namespace tenon::cuda
