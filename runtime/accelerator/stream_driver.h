// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "runtime/accelerator/driver_memory.h"

namespace tenon {

/// The three queues of an accelerator. Each does its work in the order in which it was queued,
/// beside the others.
enum class Stream : uint8_t { kCompute, kToDevice, kToHost };

/// Work for kCompute that a driver keeps, to queue it again and again. Used by one thread at a
/// time.
class DriverCapture {
 public:
  /// REQUIRES: what it queued is done.
  virtual ~DriverCapture() = default;

  // Until Finish, on one thread:
  /// What kernels queue on that are captured.
  virtual void* Native() = 0;
  /// Captures a copy, between or within the two memories; that of the host is pinned.
  virtual void Copy(void* to, const void* from, size_t bytes) = 0;
  /// An error when it cannot be repeated. Nothing has been done until then.
  virtual Status Finish() = 0;

  /// Queues it. What comes first in it sees all that was queued before, on kCompute.
  virtual void Queue() = 0;
};

/// What StreamDevice asks of an accelerator's driver; CUDA's streams and memory pools are such a
/// one. Nothing here waits for the device. What fails does so for good: from then on every callback
/// gets the error. Thread-safe; lives until the process ends.
class StreamDriver {
 public:
  virtual ~StreamDriver() = default;

  /// Memory of the device, aligned to Allocator::kAlignment, for work that is queued on `stream`
  /// from now on; null when there is none.
  virtual void* Allocate(Stream stream, size_t bytes) = 0;
  /// Gives it back behind what is queued on kCompute until now. Work on other streams that uses it
  /// must be over, or in front of that.
  virtual void Free(void* memory, size_t bytes) = 0;

  /// Host memory that copies run from and to beside the host's work; null when there is none.
  virtual void* AllocatePinned(size_t bytes) = 0;
  virtual void FreePinned(void* memory, size_t bytes) = 0;

  /// Queues a copy, between or within the two memories.
  virtual void Copy(Stream stream, void* to, const void* from, size_t bytes) = 0;
  /// Queues a copy from this device's memory into that of `peer`, a driver of the same class,
  /// behind what is queued until now on its stream `other`, for which it has given the memory.
  virtual void CopyToPeer(Stream stream, StreamDriver& peer, Stream other, void* to,
                          const void* from, size_t bytes) = 0;
  /// What is queued on `stream` from now on waits for what is on `other` until now.
  virtual void WaitFor(Stream stream, Stream other) = 0;
  /// Calls `done` when what is queued on `stream` until now is done, from any thread, perhaps
  /// before this returns, once, in order.
  virtual void CallWhenDone(Stream stream, std::function<void(const Status&)> done) = 0;
  /// Starts a capture on the calling thread, which queues nothing else until it is finished; an
  /// error when there can be none.
  virtual StatusOr<std::unique_ptr<DriverCapture>> Capture() = 0;
  /// The driver's own name of the stream.
  virtual void* Native(Stream stream) = 0;
  /// For people, when there was no memory: what the device has, and who holds it, or how it has
  /// failed. Empty when that is not known.
  virtual std::string DescribeMemory() { return {}; }

  /// The memories as tensors have them. Values that left the device keep pinned memory, so that
  /// these live as long as the driver.
  DeviceMemory& memory() { return memory_; }
  PinnedMemory& pinned() { return pinned_; }
  /// The pinned one, and the host's own when that is out.
  StagingMemory& staging() { return staging_; }

 private:
  DeviceMemory memory_{*this};
  PinnedMemory pinned_{*this};
  StagingMemory staging_{pinned_};
};

}  // namespace tenon
