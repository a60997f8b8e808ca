// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/status.h"
#include "core/device/device.h"

namespace tenon {

/// ResourceExhausted from a kernel on a device with memory of its own, with what the variables and
/// other resources of the task hold; any other status as it is. Asks each resource: REQUIRES that
/// the caller holds none of their locks.
Status WithMemoryUse(const Status& status, Device& device);

}  // namespace tenon
