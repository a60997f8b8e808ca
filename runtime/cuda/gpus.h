// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/device/device_plugin.h"

namespace tenon::cuda {

/// DevicePlugin::driver_version: a driver runs all runtimes of its major version.
int NeededDriver();

/// DevicePlugin::list_gpus.
StatusOr<std::vector<GpuDescription>> ListGpus(const GpuOptions& options);

/// DevicePlugin::make_device. The first device of a GPU makes its context, for as long as the
/// process lives, since tensors in its memory may outlive every session.
StatusOr<std::unique_ptr<Device>> MakeGpuDevice(const GpuRequest& request);

}  // namespace tenon::cuda
