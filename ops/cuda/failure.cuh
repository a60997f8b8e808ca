// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/device_queue.h"

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

}  // namespace tenon::cuda
