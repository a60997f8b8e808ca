// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device/device_kind.h"

namespace tenon {

/// What the kernels of this folder, and of the .cu files, are for: GPUs, as names of devices say.
inline const DeviceKind kCuda = DeviceKind::Named("GPU");

}  // namespace tenon
