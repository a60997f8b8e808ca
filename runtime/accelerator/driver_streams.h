// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/status.h"

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

/// The memory and the streams of an accelerator, as its maker's library has them; CUDA's streams
/// and memory pools are such. Nothing here waits for the device. What fails does so for good: from
/// then on every callback gets the error. Thread-safe; lives until the process ends.
class DriverStreams {
 public:
  virtual ~DriverStreams() = default;

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
};

}  // namespace tenon
