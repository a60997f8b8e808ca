// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device/device_kind.h"

namespace tenon {

/// The kind of device of the kernels in this folder and in .cu files, which names of devices call
/// GPU.
inline const DeviceKind kCuda = DeviceKind::Named("GPU");

}  // namespace tenon
