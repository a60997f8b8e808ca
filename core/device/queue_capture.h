// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/status.h"
#include "core/device/device.h"

namespace tenon {

/// Work of a device's queue that is kept, to be done again and again at the cost of queueing one
/// piece: on NVIDIA's GPUs a CUDA graph. It is repeated with the addresses and host values that it
/// was made with. Made by DeviceQueue::Capture, and used by one thread at a time.
class QueueCapture {
 public:
  /// REQUIRES: the steps that it was queued for are over. Tensors in its memory may live on.
  virtual ~QueueCapture() = default;

  /// Until Finish, the device under which the kernels run that are captured instead of queued, all
  /// on the calling thread: the same name and resources, with memory that nobody else gets while
  /// the capture lives. Kernels must not wait for the queue meanwhile. Memory of the device that
  /// is given back until Finish serves nobody before.
  virtual Device& device() = 0;

  /// Ends the capture. An error when it cannot be repeated: then nothing of it has been done, nor
  /// ever is.
  virtual Status Finish() = 0;

  /// Queues it, as one kernel of step `step_id` whose checks (DeviceQueue::AddCheck) are that
  /// step's. `in_use` is let go when that step has ended; until then it must not be queued again.
  /// False, and nothing is queued, when the device was short of memory and has taken back what this
  /// held. REQUIRES: Finish was OK.
  virtual bool Queue(int64_t step_id, std::shared_ptr<void> in_use) = 0;
};

}  // namespace tenon
