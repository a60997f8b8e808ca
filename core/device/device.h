// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/base/file_access.h"
#include "core/device/device_kind.h"
#include "core/memory/allocator.h"
#include "core/tensor/resource_store.h"

namespace tenon {

class DeviceQueue;

/// A place where kernels run: memory, resources, an identity. Thread-safe; lives as long as the
/// process or session that made it.
class Device {
 public:
  virtual ~Device() = default;

  /// "/job:worker/replica:0/task:1/device:CPU:0"
  virtual const std::string& name() const = 0;
  virtual DeviceKind kind() const = 0;
  /// Random, not 0, one value for the life of the process: a restarted task is told by it.
  virtual uint64_t incarnation() const = 0;
  /// Bytes, as ListDevices reports it.
  virtual int64_t memory_limit() const = 0;
  virtual Allocator& allocator() = 0;
  /// What the device's kernels queue on; null when they are done when they return, as the CPU's
  /// are.
  virtual DeviceQueue* queue() { return nullptr; }
  /// Where those of this device's kernels run that run on the host: under the same name, with the
  /// same resources, in host memory. The device itself where it has no other memory.
  virtual Device& host() { return *this; }
  /// Shared by the devices of one task.
  virtual ResourceStore& resources() = 0;
  /// Which files kernels may reach.
  virtual const FileAccess& files() const = 0;
};

}  // namespace tenon
