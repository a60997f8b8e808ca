// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/cpu_device.h"

namespace tenon::testing {

/// `count` CPU devices of the task `task` ("/job:localhost/replica:0/task:0") with one store, whose
/// default container is `container`.
inline std::vector<std::unique_ptr<Device>> MakeCpuDevices(std::string_view task, int count,
                                                           std::string_view container) {
  auto resources = std::make_shared<ResourceStore>(std::string(container));
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back(std::make_unique<CpuDevice>(StrCat(task, "/device:CPU:", i), resources));
  }
  return devices;
}

}  // namespace tenon::testing
