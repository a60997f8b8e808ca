// SPDX-License-Identifier: Apache-2.0
//
// libtenon_cuda.so: what a program with Tenon loads where there are GPUs.
#include "core/device/device_plugin.h"
#include "core/device/plugin_version.h"
#include "ops/cuda/device_kind.h"
#include "ops/cuda/register.h"
#include "runtime/accelerator/kernels.h"
#include "runtime/cuda/gpus.h"

namespace tenon {
namespace {

void RegisterKernels(OpRegistry& ops) {
  RegisterAcceleratorKernels(ops, kCuda);
  RegisterCudaKernels(ops);
}

}  // namespace
}  // namespace tenon

extern "C" const tenon::DevicePlugin* TenonDevicePlugin() {
  static const tenon::DevicePlugin plugin = {tenon::kPluginVersion,       tenon::kCuda,
                                             tenon::cuda::NeededDriver(), tenon::cuda::ListGpus,
                                             tenon::cuda::MakeGpuDevice,  tenon::RegisterKernels};
  return &plugin;
}
