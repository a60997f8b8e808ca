// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/status.h"
#include "core/device/queue_capture.h"
#include "core/tensor/tensor.h"

namespace tenon {

/// Where the word is that says whether a step has failed: not 0 when one of its kernels has noted
/// a failure. Place and word are in memory that host and device reach; a capture has one place
/// for all the steps that it is repeated in.
struct RunFailure {
  uint64_t* word = nullptr;
};

/// Where a kernel of a step notes what it found wrong. It writes `word` first, which is 0 while
/// there is nothing, then a 1 into the word of the step.
struct RunCheck {
  uint64_t* word = nullptr;
  const RunFailure* failure = nullptr;
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

  /// Host memory that copies run from and to without anybody's help, as long as there is some, and
  /// then CpuAllocator's: for values that are on their way. Lives until the process ends.
  virtual Allocator& host_allocator() { return CpuAllocator(); }

  /// A tensor in the device's memory that holds what `host` does, for kernels that are queued from
  /// now on. `host` is kept until it has been read. ResourceExhausted when memory is out.
  virtual StatusOr<Tensor> CopyToDevice(const Tensor& host) = 0;

  /// Calls `done` with a tensor in host memory that holds what `device` does behind the kernels
  /// queued until now; with the error of step `step_id` when one of its kernels failed. Never
  /// blocks. `done` is called once, from a thread of the device, and must not block either.
  virtual void CopyToHost(const Tensor& device, int64_t step_id,
                          std::function<void(StatusOr<Tensor>)> done) = 0;

  /// The copy that CopyToHost makes, but to the device whose queue `peer` is, for kernels that are
  /// queued there from then on. It is of the same kind and in this process.
  virtual void CopyToPeer(const Tensor& device, DeviceQueue& peer, int64_t step_id,
                          std::function<void(StatusOr<Tensor>)> done) = 0;

  /// Calls `done` when all that is queued until now is done, with the error of step `step_id` if it
  /// has one; then nothing is known of the step any more. `done` is as CopyToHost's.
  virtual void EndStep(int64_t step_id, std::function<void(Status)> done) = 0;

  /// A new word for a kernel of step `step_id`, with the step's own. When the device has written
  /// another value than 0 into the word, `describe(value)` is the error of the step. Freed at the
  /// step's end.
  virtual RunCheck AddCheck(int64_t step_id, std::function<Status(uint64_t)> describe) = 0;

  /// For kernels that change what outlives the step, which leave it as it is when the step has
  /// failed. Null for a step without checks so far.
  virtual const RunFailure* FailureOf(int64_t step_id) = 0;

  /// Starts to capture kernels of step `step_id`. An error when the device cannot.
  virtual StatusOr<std::unique_ptr<QueueCapture>> Capture(int64_t step_id) = 0;

  /// Blocks until all that is queued until now is done.
  virtual Status Wait() = 0;

  /// What the driver calls the queue of kernels: a cudaStream_t.
  virtual void* stream() = 0;
};

}  // namespace tenon
