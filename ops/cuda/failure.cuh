// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/cuda/launch.cuh"

// How kernels of the GPU say that they have failed, and ask whether another of their step has.

namespace tenon::cuda {

/// Notes `value`, which is not 0, as what is wrong; of several it is any.
__device__ inline void NoteFailure(RunCheck check, uint64_t value) {
  atomicExch(reinterpret_cast<unsigned long long*>(check.word),
             static_cast<unsigned long long>(value));
  // The host looks for the word when it finds the step's.
  __threadfence_system();
  *static_cast<volatile uint64_t*>(check.failure->word) = 1;
}

/// Whether the step has failed, by what was queued before this was: in device memory, since the
/// step's own word is in the host's, where blocks would read it one after another.
struct StepState {
  Tensor memory;
  /// What kernels get; null where the step cannot fail.
  const uint32_t* failed = nullptr;
};

__global__ inline void ReadFailureKernel(const RunFailure* failure, uint32_t* failed) {
  *failed = *static_cast<const volatile uint64_t*>(failure->word) != 0;
}

/// Queues a look at the running step's word.
inline StatusOr<StepState> QueueStepState(const KernelContext& ctx) {
  StepState state;
  const RunFailure* const failure = ctx.device().queue()->FailureOf(ctx.device_run().id);
  if (failure == nullptr) return state;
  TENON_ASSIGN_OR_RETURN(state.memory,
                         Tensor::Allocate(ctx.device().allocator(), DType::kUInt32, Shape()));
  state.failed = state.memory.data<uint32_t>();
  ReadFailureKernel<<<1, 1, 0, StreamOf(ctx)>>>(failure, state.memory.data<uint32_t>());
  TENON_RETURN_IF_ERROR(LaunchStatus());
  return state;
}

/// Whether the step has failed; `failed` is StepState::failed.
__device__ inline bool StepHasFailed(const uint32_t* failed) {
  return failed != nullptr && *failed != 0;
}

template <typename F>
__global__ void __launch_bounds__(kBlockThreads)
    UpdateEachKernel(int64_t n, const uint32_t* step_failed, F f) {
  const bool failed = StepHasFailed(step_failed);
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
  TENON_ASSIGN_OR_RETURN(const StepState state, QueueStepState(ctx));
  UpdateEachKernel<<<GridBlocks(n), kBlockThreads, 0, StreamOf(ctx)>>>(n, state.failed, f);
  return LaunchStatus();
}

}  // namespace tenon::cuda
