// SPDX-License-Identifier: Apache-2.0
//
// libtenon_simulated.so: the simulated device as a plugin, so that whatever runs on GPUs runs on
// it, scripts of TensorFlow's on a server too: with TENON_CUDA_PLUGIN naming it, and beside it a
// driver's library that is there and nothing more.
#include <array>

#include "core/device/device_plugin.h"
#include "core/device/plugin_version.h"
#include "ops/cuda/device_kind.h"
#include "runtime/accelerator/kernels.h"
#include "runtime/accelerator/stream_device.h"
#include "tests/testing/simulated_driver.h"
#include "tests/testing/simulated_kernels.h"

namespace tenon::testing {
namespace {

constexpr int64_t kMemory = int64_t{8} << 30;
constexpr int kDevices = 2;

SimulatedDriver& Driver(int index) {
  static const std::array<SimulatedDriver*, kDevices> drivers = {new SimulatedDriver(1, kMemory),
                                                                 new SimulatedDriver(2, kMemory)};
  return *drivers[index];
}

StatusOr<std::vector<GpuDescription>> ListGpus(const GpuOptions&) {
  const GpuDescription device = {"simulated device", kMemory, 9, 0, "0000:00:00.0"};
  return std::vector<GpuDescription>(kDevices, device);
}

StatusOr<std::unique_ptr<Device>> MakeDevice(const GpuRequest& request) {
  return std::make_unique<StreamDevice>(request.name, request.kind, Driver(request.index), kMemory,
                                        request.resources, request.files);
}

void RegisterKernels(OpRegistry& ops) {
  RegisterAcceleratorKernels(ops, kCuda);
  RegisterSimulatedKernels(ops);
}

}  // namespace
}  // namespace tenon::testing

extern "C" const tenon::DevicePlugin* TenonDevicePlugin() {
  static const tenon::DevicePlugin plugin = {tenon::kPluginVersion,
                                             tenon::kCuda,
                                             0,
                                             tenon::testing::ListGpus,
                                             tenon::testing::MakeDevice,
                                             tenon::testing::RegisterKernels};
  return &plugin;
}
