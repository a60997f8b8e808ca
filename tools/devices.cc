// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "core/base/parallel.h"
#include "core/base/plural.h"
#include "tools/commands.h"
#include "tools/device_flags.h"

namespace tenon::tools {
namespace {

/// One line a device, and one with the reason where there is no GPU, which is no failure.
int PrintDevices(const DeviceFlags& flags) {
  const auto options = flags.Resolve();
  if (!options.ok()) return Report(WrongUsage(Message(options.status())));
  for (int i = 0; i < std::max(1, options->cpus); ++i) {
    std::printf("/device:CPU:%d  %d threads\n", i, ThreadBudget());
  }
  const auto gpus = ListGpus(options->gpu);
  if (!gpus.ok()) {
    if (gpus.status().code() == StatusCode::kInvalidArgument) return Report(gpus.status());
    std::printf("no GPU: %s\n", std::string(Message(gpus.status())).c_str());
    return options->gpus.value_or(0) > 0 ? kFailed : kDone;
  }
  const int wanted = options->gpus.value_or(static_cast<int>(gpus->size()));
  for (int i = 0; i < std::min<int>(wanted, gpus->size()); ++i) {
    const GpuDescription& gpu = (*gpus)[i];
    std::printf("/device:GPU:%d  %s, %.1f GiB, compute capability %d.%d, %s\n", i, gpu.name.c_str(),
                static_cast<double>(gpu.memory_bytes) / (1 << 30), gpu.compute_major,
                gpu.compute_minor, gpu.pci_bus_id.c_str());
  }
  if (wanted <= static_cast<int>(gpus->size())) return kDone;
  return Report(FailedPrecondition("wanted ", Plural(wanted, "GPU"), ", found ", gpus->size()));
}

}  // namespace

void AddDevicesCommand(CLI::App& app, Command* chosen) {
  auto flags = std::make_shared<DeviceFlags>();
  CLI::App* devices = app.add_subcommand(
      "devices", "List the devices that a process here has, or say why there is no GPU");
  flags->AddTo(*devices);
  devices->callback([=] { *chosen = [flags] { return PrintDevices(*flags); }; });
}

}  // namespace tenon::tools
