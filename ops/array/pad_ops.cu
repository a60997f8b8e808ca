// SPDX-License-Identifier: Apache-2.0
#include "ops/array/mirrored_rows.h"
#include "ops/cuda/element.cuh"
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/mover.h"
#include "ops/cuda/register.h"

namespace tenon {
namespace cuda {
namespace {

template <typename T>
struct AddMirrored {
  MirroredRows rows;
  T* data;
  __device__ void operator()(int64_t k) const {
    const auto [source, target] = rows.At(k);
    data[target] = Narrow<T>(Plus(Widen(data[target]), Widen(data[source])));
  }
};

Status AddMirroredOnDevice(KernelContext& ctx, const MirroredRows& rows, Tensor* data) {
  return DispatchStatus(data->dtype(), RealTypes(), [&]<typename T>(T) {
    return ForEach(ctx, rows.num_elements(), AddMirrored<T>{rows, data->data<T>()});
  });
}

Status MirrorPadGradOnDevice(KernelContext& ctx, const std::string& mode) {
  return MirrorPadGradKernel(ctx, kDeviceMover, AddMirroredOnDevice, mode);
}

}  // namespace
}  // namespace cuda

void RegisterCudaPad(OpRegistry& ops) {
  cuda::AddKernel(ops, "MirrorPadGrad", cuda::MirrorPadGradOnDevice,
                  {.types = {{"T", DTypesOf(RealTypes())}}, .attrs = {"mode"}});
}

}  // namespace tenon
