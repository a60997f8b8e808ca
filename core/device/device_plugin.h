// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"

// GPUs come in a library of their own, libtenon_cuda.so, so that one build serves hosts with and
// without them. What it uses of core and runtime it takes from the program that loads it.

namespace tenon {

class OpRegistry;

/// How a process uses its GPUs, as TensorFlow's GPUOptions have it. The first use of a GPU in the
/// process decides for it.
struct GpuOptions {
  /// The most that tensors may take of each GPU's memory, as a share; 0: all that there is.
  double memory_fraction = 0;
  /// Take memory as it is needed; otherwise what may be taken is taken at once.
  bool allow_growth = true;
  /// Numbers of GPUs as the driver counts them, such as "1,0": those to use, in this order. Empty:
  /// all.
  std::string visible_devices = {};
};

/// What is known of a GPU without using it.
struct GpuDescription {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  int64_t memory_bytes = 0;
  int compute_major = 0;
  int compute_minor = 0;
  std::string pci_bus_id;
};

/// A device to make of a GPU.
struct GpuRequest {
  DeviceKind kind;   // the plugin's
  int index = 0;     // among the visible ones
  std::string name;  // "/job:worker/replica:0/task:1/device:GPU:0"
  std::shared_ptr<ResourceStore> resources;
  FileAccess files = {};
  GpuOptions options = {};
};

/// The entry of such a library. Only its first member may be read before it is known to be of this
/// program's version: the others are C++. All functions are thread-safe.
struct DevicePlugin {
  /// The project's version and a digest of the headers that program and library share, where the
  /// library was built.
  const char* version;
  /// The kind of its devices, which names of devices have.
  DeviceKind kind;
  /// The oldest driver that it runs with, as cuDriverGetVersion counts: 13000 is CUDA 13.0.
  int driver_version;
  /// The visible GPUs in order; takes no memory of them. NotFound, with the driver's reason, when
  /// there is none; InvalidArgument for a list of devices that cannot be.
  StatusOr<std::vector<GpuDescription>> (*list_gpus)(const GpuOptions& options);
  /// A device that shares its GPU, and the memory there, with the others of this process.
  StatusOr<std::unique_ptr<Device>> (*make_device)(const GpuRequest& request);
  /// Adds its kernels to declared ops.
  void (*register_kernels)(OpRegistry& ops);
};

/// The name of the function that gives it: `extern "C" const tenon::DevicePlugin*
/// TenonDevicePlugin()`.
inline constexpr char kPluginFunction[] = "TenonDevicePlugin";

/// The library with GPUs, which the first call looks for: where the environment variable
/// TENON_CUDA_PLUGIN says, or beside the executable, in ../lib of that, and where the loader looks;
/// and only if there is a driver. It stays loaded. The error is one line that says why there is
/// none: no driver or one that is too old, no library or one of another version.
StatusOr<const DevicePlugin*> CudaPlugin();

/// The visible GPUs, or why there are none, in one line.
StatusOr<std::vector<GpuDescription>> ListGpus(const GpuOptions& options = {});

}  // namespace tenon
