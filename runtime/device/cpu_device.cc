// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cpu_device.h"

#include <utility>

namespace tenon {

CpuDevice::CpuDevice(std::string name, std::shared_ptr<ResourceStore> resources, FileAccess files,
                     Entropy& entropy)
    : name_(std::move(name)),
      incarnation_(entropy.NextNonZero()),
      resources_(std::move(resources)),
      files_(std::move(files)) {}

}  // namespace tenon
