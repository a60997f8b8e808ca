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

std::vector<std::unique_ptr<Device>> MakeCpuDevices(std::string_view task, int count,
                                                    std::string_view container,
                                                    const FileAccess& files) {
  auto resources = std::make_shared<ResourceStore>(std::string(container));
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back(
        std::make_unique<CpuDevice>(StrCat(task, "/device:CPU:", i), resources, files));
  }
  return devices;
}

}  // namespace tenon
