// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/device_config.h"

#include <algorithm>
#include <optional>

namespace tenon {
namespace {

std::optional<int> CountOf(const ConfigProto& config, const std::string& type) {
  const auto found = config.device_count().find(type);
  if (found == config.device_count().end()) return std::nullopt;
  return found->second;
}

}  // namespace

StatusOr<DeviceOptions> DeviceOptionsOf(const ConfigProto& config) {
  for (const auto& [type, count] : config.device_count()) {
    if (count < 0) return InvalidArgument("found ", count, " for device_count of ", type);
  }
  DeviceOptions options;
  options.gpu.memory_fraction = config.gpu_options().per_process_gpu_memory_fraction();
  options.gpu.visible_devices = config.gpu_options().visible_device_list();
  options.cpus = CountOf(config, "CPU").value_or(1);
  options.gpus = CountOf(config, "GPU");
  if (options.gpus.value_or(0) > 0) {
    const auto gpus = ListGpus(options.gpu);
    const int found = gpus.ok() ? static_cast<int>(gpus->size()) : 0;
    options.gpus = std::min(*options.gpus, found);
  }
  return options;
}

bool MayUse(const DeviceName& device, const ConfigProto& config) {
  if (!device.type || !device.id) return true;
  const std::optional<int> count = CountOf(config, *device.type);
  if (!count) return true;
  return *device.id < (*device.type == "CPU" ? std::max(1, *count) : *count);
}

}  // namespace tenon
