// SPDX-License-Identifier: Apache-2.0
//
// Writes to tensor arrays, of which those to arrays of gradients add up.
#include "ops/tensor_array/array_writes.h"

#include "ops/cuda/device_kind.h"
#include "ops/cuda/element.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/register.h"

namespace tenon {
namespace {

template <typename T>
struct Add {
  const T *a, *b;
  T* sum;
  __device__ void operator()(int64_t i) const {
    sum[i] = cuda::Narrow<T>(Plus(cuda::Widen(a[i]), cuda::Widen(b[i])));
  }
};

StatusOr<Tensor> AddOnDevice(const KernelContext& ctx, const Tensor& a, const Tensor& b) {
  TENON_ASSIGN_OR_RETURN(Tensor sum, Tensor::Allocate(a.allocator(), a.dtype(), a.shape()));
  TENON_RETURN_IF_ERROR(DispatchStatus(a.dtype(), RealTypes(), [&]<typename T>(T) {
    return cuda::ForEach(ctx, a.num_elements(), Add<T>{a.data<T>(), b.data<T>(), sum.data<T>()});
  }));
  return sum;
}

template <Status (*kWrite)(KernelContext&, AddTensors)>
Status WriteOnDevice(KernelContext& ctx) {
  return kWrite(ctx, AddOnDevice);
}

}  // namespace

void RegisterCudaTensorArrayWrites(OpRegistry& ops) {
  const KernelOptions real = {.types = {{"T", DTypesOf(RealTypes())}}};
  ops.Get("TensorArrayWriteV3").Kernel(kCuda, WriteOnDevice<WriteToArray>, real);
  ops.Get("TensorArrayScatterV3").Kernel(kCuda, WriteOnDevice<ScatterToArray>, real);
  ops.Get("TensorArraySplitV3").Kernel(kCuda, WriteOnDevice<SplitToArray>, real);
}

}  // namespace tenon
