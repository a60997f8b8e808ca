// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/task_devices.h"

#include <algorithm>

#include "core/base/plural.h"
#include "runtime/device/cpu_device.h"

namespace tenon {
namespace {

/// How many GPUs the task gets; none with the reason in `why`.
StatusOr<int> CountGpus(const DeviceOptions& options, std::string* why) {
  if (options.gpus == 0) {
    *why = "it has been asked to use none";
    return 0;
  }
  const auto gpus = ListGpus(options.gpu);
  if (!gpus.ok()) {
    const bool wrong = gpus.status().code() == StatusCode::kInvalidArgument;
    if (!options.gpus && !wrong) {
      *why = std::string(Message(gpus.status()));
      return 0;
    }
    return Annotate(gpus.status(),
                    wrong ? "GPUs" : StrCat("wanted ", Plural(*options.gpus, "GPU")));
  }
  const int found = static_cast<int>(gpus->size());
  if (options.gpus > found) {
    return FailedPrecondition("wanted ", Plural(*options.gpus, "GPU"), ", found ", found);
  }
  return options.gpus.value_or(found);
}

}  // namespace

StatusOr<TaskDevices> MakeTaskDevices(const TaskDeviceOptions& options) {
  TaskDevices made;
  for (int i = 0; i < std::max(1, options.devices.cpus); ++i) {
    made.devices.push_back(std::make_unique<CpuDevice>(StrCat(options.task, "/device:CPU:", i),
                                                       options.resources, options.files,
                                                       *options.entropy));
  }
  TENON_ASSIGN_OR_RETURN(const int gpus, CountGpus(options.devices, &made.why_no_gpu));
  for (int i = 0; i < gpus; ++i) {
    TENON_ASSIGN_OR_RETURN(const DevicePlugin* const plugin, CudaPlugin());
    TENON_ASSIGN_OR_RETURN(
        std::unique_ptr<Device> device,
        plugin->make_device({plugin->kind, i,
                             StrCat(options.task, "/device:", plugin->kind.name(), ":", i),
                             options.resources, options.files, options.devices.gpu}));
    made.devices.push_back(std::move(device));
  }
  return made;
}

}  // namespace tenon
