// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "core/status.h"
#include "core/tensor.h"

namespace tenon {

/// Where a kernel of a step notes what it found wrong: two words in memory that host and device
/// reach, both 0 while there is nothing. A kernel writes `word` first, then a 1 into `failure`,
/// which is the step's.
struct StepCheck {
  uint64_t* word = nullptr;
  uint64_t* failure = nullptr;
};

/// What a device with memory of its own does while the host goes on. Its kernels queue their work
/// and return; what one queues runs after all that was queued before it, so that they hand each
/// other tensors without waiting, and memory that the host gives back is used again only behind
/// what was queued until then. Copies between the two memories go beside the kernels, each in its
/// place among them. Thread-safe.
///
/// What fails on the device is known later: it is the error of the step whose kernel it was, and
/// every copy to the host and end of that step gives it.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;

  /// A tensor in the device's memory that holds what `host` does, for kernels that are queued from
  /// now on. `host` is kept until it has been read. ResourceExhausted when memory is out.
  virtual StatusOr<Tensor> CopyToDevice(const Tensor& host) = 0;

  /// Calls `done` with a tensor in host memory that holds what `device` does behind the kernels
  /// queued until now; with the error of step `step_id` when one of its kernels failed. Never
  /// blocks. `done` is called once, from a thread of the device, and must not block either.
  virtual void CopyToHost(const Tensor& device, int64_t step_id,
                          std::function<void(StatusOr<Tensor>)> done) = 0;

  /// Calls `done` when all that is queued until now is done, with the error of step `step_id` if it
  /// has one; then its record is gone. As CopyToHost's.
  virtual void EndStep(int64_t step_id, std::function<void(Status)> done) = 0;

  /// A new word for a kernel of step `step_id`, with the step's own. When the device has written
  /// another value than 0 into the word, `describe(value)` is the error of the step. Freed at the
  /// step's end.
  virtual StepCheck AddCheck(int64_t step_id, std::function<Status(uint64_t)> describe) = 0;

  /// The step's own word of its checks, for kernels that change what outlives the step: they leave
  /// it as it is when they find another value than 0. Null for a step without checks so far.
  virtual const uint64_t* FailureOf(int64_t step_id) = 0;

  /// Blocks until all that is queued until now is done.
  virtual Status Wait() = 0;

  /// What the driver calls the queue of kernels: a cudaStream_t.
  virtual void* stream() = 0;
};

}  // namespace tenon
