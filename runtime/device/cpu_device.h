// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "core/device/device.h"
#include "runtime/device/machine.h"

namespace tenon {

/// The host's processors as one device. Several may exist in a process (tests and model parallel
/// graphs use that); the devices of one task share their resources.
class CpuDevice final : public Device {
 public:
  /// TensorFlow reports this much memory for every CPU device.
  static constexpr int64_t kReportedMemory = 256 << 20;

  /// `name` is a full device name; `resources` may be shared with other devices.
  /// Its incarnation is of `entropy`.
  CpuDevice(std::string name, std::shared_ptr<ResourceStore> resources, FileAccess files = {},
            Entropy& entropy = MachineEntropy());

  const std::string& name() const override { return name_; }
  DeviceKind kind() const override { return kCpu; }
  uint64_t incarnation() const override { return incarnation_; }
  int64_t memory_limit() const override { return kReportedMemory; }
  Allocator& allocator() override { return CpuAllocator(); }
  ResourceStore& resources() override { return *resources_; }
  const FileAccess& files() const override { return files_; }

 private:
  const std::string name_;
  const uint64_t incarnation_;
  const std::shared_ptr<ResourceStore> resources_;
  const FileAccess files_;
};

}  // namespace tenon
