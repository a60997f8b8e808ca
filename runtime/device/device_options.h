// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/device/device_plugin.h"

namespace tenon {

/// Which devices a process, or a session in it, has.
struct DeviceOptions {
  int cpus = 1;
  /// The first so many of the visible GPUs, which must be there; nothing: those that there are.
  std::optional<int> gpus = {};
  GpuOptions gpu = {};
};

}  // namespace tenon
