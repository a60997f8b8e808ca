// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "runtime/device/device_options.h"
#include "runtime/device/machine.h"

namespace tenon {

/// What devices a task has.
struct TaskDeviceOptions {
  std::string task;  // "/job:localhost/replica:0/task:0"
  DeviceOptions devices = {};
  std::shared_ptr<ResourceStore> resources;
  FileAccess files = {};
  /// The source of the CPUs' incarnations; must outlive the call.
  Entropy* entropy = &MachineEntropy();
};

/// The devices of one task, which share resources and files.
struct TaskDevices {
  std::vector<std::unique_ptr<Device>> devices;  // CPUs first, at least one
  /// Why there is no GPU, in one line; empty when there is one.
  std::string why_no_gpu;
};

/// Devices <task>/device:CPU:0 and up, <task>/device:GPU:0 and up. FailedPrecondition or NotFound,
/// with the reason, when GPUs are wanted that are not there; the GPU's error when one cannot be
/// used.
StatusOr<TaskDevices> MakeTaskDevices(const TaskDeviceOptions& options);

}  // namespace tenon
