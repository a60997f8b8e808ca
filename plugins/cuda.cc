// SPDX-License-Identifier: Apache-2.0
//
// libtenon_cuda.so: what a program with Tenon loads where there are GPUs.
#include "core/device/device_plugin.h"
#include "core/device/plugin_version.h"
#include "ops/cuda/device_kind.h"
#include "ops/cuda/libraries.h"
#include "ops/cuda/register.h"
#include "runtime/accelerator/kernels.h"
#include "runtime/accelerator/stream_device.h"
#include "runtime/cuda/gpus.h"
#include "runtime/cuda/nccl_backend.h"

namespace tenon {
namespace {

void RegisterKernels(OpRegistry& ops) {
  RegisterAcceleratorKernels(ops, kCuda);
  RegisterCudaKernels(ops);
}

StatusOr<const cuda::Nccl*> FindNccl() {
  static auto* const library = new cuda::Library("libnccl.so", 2);
  static const auto* const nccl = new StatusOr<cuda::Nccl>(
      cuda::LoadNccl([](const char* symbol) { return library->Get<void*>(symbol); }));
  if (!nccl->ok()) return nccl->status();
  return &**nccl;
}

Status CheckGpu(const RankOptions&) { return FindNccl().status(); }

/// Ranks by their GPUs.
StatusOr<std::unique_ptr<CollectiveBackend>> JoinByGpu(const RankOptions& options) {
  TENON_ASSIGN_OR_RETURN(const cuda::Nccl* const nccl, FindNccl());
  auto& device = static_cast<StreamDevice&>(*options.device);
  return cuda::JoinByNccl(options, static_cast<cuda::CudaDriver&>(device.driver()), *nccl);
}

}  // namespace
}  // namespace tenon

extern "C" const tenon::DevicePlugin* TenonDevicePlugin() {
  static const tenon::DevicePlugin plugin = {tenon::kPluginVersion,       tenon::kCuda,
                                             tenon::cuda::NeededDriver(), tenon::cuda::ListGpus,
                                             tenon::cuda::MakeGpuDevice,  tenon::RegisterKernels};
  return &plugin;
}

extern "C" const tenon::CollectivesPlugin* TenonCollectivesPlugin() {
  static const tenon::CollectivesPlugin plugin = {tenon::kPluginVersion, tenon::JoinByGpu,
                                                  tenon::CheckGpu};
  return &plugin;
}
