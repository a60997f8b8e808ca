// SPDX-License-Identifier: Apache-2.0
//
// libtenon_simulated.so: the simulated device as a plugin, so that whatever runs on GPUs runs on
// it, scripts of TensorFlow's on a server too: with TENON_CUDA_PLUGIN naming it, and beside it a
// driver's library that is there and nothing more.
#include <dlfcn.h>

#include <array>
#include <string>

#include "core/base/strings.h"
#include "core/device/device_plugin.h"
#include "core/device/plugin_version.h"
#include "ops/cuda/device_kind.h"
#include "runtime/accelerator/kernels.h"
#include "runtime/accelerator/stream_device.h"
#include "tests/testing/simulated_driver.h"
#include "tests/testing/simulated_kernels.h"
#include "tests/testing/simulated_ranks.h"

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

/// The plugin for Gloo of the same build, which is in the folder above this one's.
StatusOr<const CollectivesPlugin*> Gloo() {
  Dl_info own = {};
  if (dladdr(reinterpret_cast<const void*>(&Driver), &own) == 0) return NotFound("no own file");
  const std::string file = own.dli_fname;
  const std::string gloo = StrCat(file.substr(0, file.rfind('/')), "/../libtenon_gloo.so");
  void* const library = dlopen(gloo.c_str(), RTLD_NOW);
  if (library == nullptr) return NotFound(dlerror());
  using Function = const CollectivesPlugin* (*)();
  const auto function = reinterpret_cast<Function>(dlsym(library, kCollectivesPluginFunction));
  if (function == nullptr) return NotFound(gloo, " is no plugin");
  return function();
}

StatusOr<std::unique_ptr<CollectiveBackend>> Join(const RankOptions& options) {
  TENON_ASSIGN_OR_RETURN(const CollectivesPlugin* const gloo, Gloo());
  return JoinBySimulatedDevice(options, gloo->join);
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

extern "C" const tenon::CollectivesPlugin* TenonCollectivesPlugin() {
  static const tenon::CollectivesPlugin plugin = {tenon::kPluginVersion, tenon::testing::Join};
  return &plugin;
}
