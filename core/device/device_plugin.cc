// SPDX-License-Identifier: Apache-2.0
#include "core/device/device_plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "core/device/plugin_version.h"

namespace tenon {
namespace {

constexpr char kDriver[] = "libcuda.so.1";
constexpr char kLibrary[] = "libtenon_cuda.so";
constexpr char kVariable[] = "TENON_CUDA_PLUGIN";

std::string LastLoaderError() {
  const char* const text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

/// The folder of this process's executable; empty when the system does not say.
std::string ExecutableFolder() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) return "";
  const std::string_view text(path, static_cast<size_t>(length));
  return std::string(text.substr(0, text.rfind('/')));
}

Status CannotLoad(std::string_view path) {
  return FailedPrecondition("the plugin for GPUs cannot be loaded: ", LastLoaderError(), " (", path,
                            "; this program wants version ", kPluginVersion, ")");
}

/// All symbols are bound at once: one that is missing is found here and not in the middle of a
/// step.
constexpr int kLoad = RTLD_NOW | RTLD_LOCAL;

StatusOr<void*> LoadLibrary(std::string* path) {
  if (const char* const given = std::getenv(kVariable); given != nullptr && *given != '\0') {
    *path = given;
    if (access(given, F_OK) != 0) {
      return NotFound("the plugin for GPUs is missing: ", kVariable, " names ", given,
                      ", where there is no file");
    }
    void* const handle = dlopen(given, kLoad);
    if (handle == nullptr) return CannotLoad(given);
    return handle;
  }
  const std::string folder = ExecutableFolder();
  std::vector<std::string> places;
  if (!folder.empty()) places = {folder, StrCat(folder, "/../lib")};
  for (const std::string& place : places) {
    *path = StrCat(place, "/", kLibrary);
    if (access(path->c_str(), F_OK) != 0) continue;
    void* const handle = dlopen(path->c_str(), kLoad);
    if (handle == nullptr) return CannotLoad(*path);
    return handle;
  }
  *path = kLibrary;
  if (void* const handle = dlopen(kLibrary, kLoad)) return handle;
  const std::string error = LastLoaderError();
  if (!error.starts_with(StrCat(kLibrary, ": cannot open"))) {
    return FailedPrecondition("the plugin for GPUs cannot be loaded: ", error,
                              " (this program wants version ", kPluginVersion, ")");
  }
  return NotFound("the plugin for GPUs is missing: ", kLibrary, " is neither in ",
                  Join(places, ", "), " nor where the loader looks; ", kVariable, " may name it");
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
  std::string path;
  TENON_ASSIGN_OR_RETURN(void* const library, LoadLibrary(&path));
  const auto get_plugin =
      reinterpret_cast<const DevicePlugin* (*)()>(dlsym(library, kPluginFunction));
  if (get_plugin == nullptr) {
    return FailedPrecondition("the plugin for GPUs, ", path, ", is none: it has no function ",
                              kPluginFunction);
  }
  const DevicePlugin* const plugin = get_plugin();
  if (plugin->version != std::string_view(kPluginVersion)) {
    return FailedPrecondition("the plugin for GPUs, ", path, ", is of another version: found ",
                              plugin->version, ", wanted ", kPluginVersion);
  }
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
