// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device/device_name.h"
#include "proto/config.pb.h"
#include "runtime/device/device_options.h"

namespace tenon {

/// device_count and gpu_options: visible_device_list, per_process_gpu_memory_fraction. Memory grows
/// with or without allow_growth: its default cannot be told from a wish to take all at once.
/// There are never more GPUs than there are: device_count says how many at most. InvalidArgument
/// for a count below 0.
StatusOr<DeviceOptions> DeviceOptionsOf(const ConfigProto& config);

/// Whether device_count leaves the device, of any task, to a session; the first CPU it always does.
bool MayUse(const DeviceName& device, const ConfigProto& config);

}  // namespace tenon
