// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "runtime/accelerator/driver_memory.h"
#include "runtime/accelerator/driver_streams.h"

namespace tenon {

/// What StreamDevice asks of an accelerator's driver: its streams, and memory for tensors on them.
/// Thread-safe; lives until the process ends.
class StreamDriver : public DriverStreams {
 public:
  /// Queues a copy from this device's memory into that of `peer`, a driver of the same class,
  /// behind what is queued until now on its stream `other`, for which it has given the memory.
  virtual void CopyToPeer(Stream stream, StreamDriver& peer, Stream other, void* to,
                          const void* from, size_t bytes) = 0;

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
