// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cpu_device.h"

#include <random>

namespace tenon {

uint64_t RandomNonZero64() {
  std::random_device device;
  uint64_t number = 0;
  while (number == 0) number = static_cast<uint64_t>(device()) << 32 | device();
  return number;
}

CpuDevice::CpuDevice(std::string name, std::shared_ptr<ResourceStore> resources, FileAccess files)
    : name_(std::move(name)),
      incarnation_(RandomNonZero64()),
      resources_(std::move(resources)),
      files_(std::move(files)) {}

}  // namespace tenon
