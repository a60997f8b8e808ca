// SPDX-License-Identifier: Apache-2.0
#include "core/device/device_plugin.h"

#include <dlfcn.h>

#include "core/device/plugin_library.h"

namespace tenon {
namespace {

constexpr char kDriver[] = "libcuda.so.1";
constexpr char kLibrary[] = "libtenon_cuda.so";
constexpr char kVariable[] = "TENON_CUDA_PLUGIN";

std::string LastLoaderError() {
  const char* const text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

std::string CudaVersion(int number) { return StrCat(number / 1000, ".", number % 1000 / 10); }

Status CheckDriver(void* driver, int wanted) {
  const auto get_version = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDriverGetVersion"));
  int found = 0;
  if (get_version == nullptr || get_version(&found) != 0) {
    return FailedPrecondition("the NVIDIA driver (", kDriver, ") does not tell its version");
  }
  if (found >= wanted) return OkStatus();
  return FailedPrecondition("the NVIDIA driver is too old: found one for CUDA ", CudaVersion(found),
                            ", wanted CUDA ", CudaVersion(wanted), " or newer");
}

StatusOr<const DevicePlugin*> Load() {
  void* const driver = dlopen(kDriver, RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return NotFound("there is no NVIDIA driver: ", LastLoaderError());
  TENON_ASSIGN_OR_RETURN(const void* const given,
                         LoadPlugin({"the plugin for GPUs", kLibrary, kVariable, kPluginFunction}));
  const auto* const plugin = static_cast<const DevicePlugin*>(given);
  TENON_RETURN_IF_ERROR(CheckDriver(driver, plugin->driver_version));
  return plugin;
}

}  // namespace

StatusOr<const DevicePlugin*> CudaPlugin() {
  static const auto* const plugin = new StatusOr<const DevicePlugin*>(Load());
  return *plugin;
}

StatusOr<std::vector<GpuDescription>> ListGpus(const GpuOptions& options) {
  TENON_ASSIGN_OR_RETURN(const DevicePlugin* const plugin, CudaPlugin());
  return plugin->list_gpus(options);
}

}  // namespace tenon
