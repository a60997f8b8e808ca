// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/gpus.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>

#include "runtime/accelerator/stream_device.h"
#include "runtime/cuda/cuda_driver.h"
#include "runtime/device/session_device.h"

namespace tenon::cuda {
namespace {

/// A GPU in use. Never destroyed: at the end of the process CUDA may go first.
struct Gpu {
  std::unique_ptr<CudaDriver> driver;
  std::unique_ptr<StreamDevice> device;
};

StatusOr<int> CountGpus() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return count;
  cudaGetLastError();
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return NotFound("the NVIDIA driver shows no GPU: ",
                  error == cudaSuccess ? "it counts none" : cudaGetErrorString(error),
                  visible == nullptr ? "" : StrCat(" (CUDA_VISIBLE_DEVICES is '", visible, "')"));
}

/// The numbers, for CUDA's runtime, of the GPUs that `options` make visible.
StatusOr<std::vector<int>> VisibleGpus(const GpuOptions& options) {
  if (!(options.memory_fraction >= 0 && options.memory_fraction <= 1)) {
    return InvalidArgument("found ", options.memory_fraction,
                           " for the share of a GPU's memory, wanted 0 to 1");
  }
  TENON_ASSIGN_OR_RETURN(const int count, CountGpus());
  std::vector<int> visible;
  if (options.visible_devices.empty()) {
    for (int i = 0; i < count; ++i) visible.push_back(i);
    return visible;
  }
  const std::string& list = options.visible_devices;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    int ordinal = -1;
    const auto read = std::from_chars(list.data() + begin, list.data() + end, ordinal);
    if (read.ec != std::errc() || read.ptr != list.data() + end || ordinal < 0 ||
        ordinal >= count) {
      return InvalidArgument("found '", list.substr(begin, end - begin), "' in the visible GPUs '",
                             list, "', wanted numbers from 0 to ", count - 1);
    }
    if (std::find(visible.begin(), visible.end(), ordinal) != visible.end()) {
      return InvalidArgument("the visible GPUs '", list, "' name ", ordinal, " twice");
    }
    visible.push_back(ordinal);
    begin = end + 1;
  }
  return visible;
}

StatusOr<GpuDescription> Describe(int ordinal) {
  cudaDeviceProp properties = {};
  char bus_id[32] = {};
  cudaError_t error = cudaGetDeviceProperties(&properties, ordinal);
  if (error == cudaSuccess) error = cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), ordinal);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return Unavailable("GPU ", ordinal, " does not say what it is: ", cudaGetErrorString(error));
  }
  return GpuDescription{properties.name, static_cast<int64_t>(properties.totalGlobalMem),
                        properties.major, properties.minor, bus_id};
}

StatusOr<Gpu> Open(int ordinal, DeviceKind kind, const GpuOptions& options) {
  TENON_ASSIGN_OR_RETURN(const GpuDescription description, Describe(ordinal));
  Gpu gpu;
  TENON_ASSIGN_OR_RETURN(
      gpu.driver, CudaDriver::Make(ordinal, StrCat(ordinal, " (", description.name, ")"), options));
  gpu.device = std::make_unique<StreamDevice>(StrCat("/device:", kind.name(), ":", ordinal), kind,
                                              *gpu.driver, gpu.driver->memory_limit(),
                                              std::make_shared<ResourceStore>());
  return gpu;
}

StatusOr<StreamDevice*> DeviceOf(int ordinal, DeviceKind kind, const GpuOptions& options) {
  static Mutex mu;
  static auto* const gpus = new std::map<int, Gpu>;
  MutexLock lock(mu);
  const auto found = gpus->find(ordinal);
  if (found != gpus->end()) return found->second.device.get();
  TENON_ASSIGN_OR_RETURN(Gpu gpu, Open(ordinal, kind, options));
  return gpus->emplace(ordinal, std::move(gpu)).first->second.device.get();
}

}  // namespace

int NeededDriver() { return CUDART_VERSION / 1000 * 1000; }

StatusOr<std::vector<GpuDescription>> ListGpus(const GpuOptions& options) {
  TENON_ASSIGN_OR_RETURN(const std::vector<int> visible, VisibleGpus(options));
  std::vector<GpuDescription> gpus;
  for (const int ordinal : visible) {
    TENON_ASSIGN_OR_RETURN(gpus.emplace_back(), Describe(ordinal));
  }
  return gpus;
}

StatusOr<std::unique_ptr<Device>> MakeGpuDevice(const GpuRequest& request) {
  TENON_ASSIGN_OR_RETURN(const std::vector<int> visible, VisibleGpus(request.options));
  if (request.index < 0 || request.index >= static_cast<int>(visible.size())) {
    return InvalidArgument("found GPU ", request.index, ", wanted one of ", visible.size());
  }
  TENON_ASSIGN_OR_RETURN(StreamDevice* const device,
                         DeviceOf(visible[request.index], request.kind, request.options));
  return std::make_unique<SessionDevice>(*device, request.name, request.resources, request.files);
}

}  // namespace tenon::cuda
