// SPDX-License-Identifier: Apache-2.0
#include "ops/arguments.h"
#include "ops/cuda/element.cuh"
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/register.h"

namespace tenon {
namespace cuda {
namespace {

/// `out` may be `values` or `features`.
template <typename T>
struct LeakyElement {
  const T *values, *features;
  T* out;
  float alpha;
  __device__ void operator()(int64_t i) const {
    const T value = values[i];
    const auto slope = Widen(Narrow<T>(alpha));  // as exact as a T is
    out[i] = Widen(features[i]) > 0 ? value : Narrow<T>(Widen(value) * slope);
  }
};

/// Input 0, where the last input (the features) is not above 0 times alpha: LeakyRelu, and its
/// gradient, which has the gradients first.
Status LeakyKernel(KernelContext& ctx, float alpha) {
  TENON_RETURN_IF_ERROR(CheckSameShape(ctx));
  const Shape shape = ctx.input(0).shape();
  const void* values = ctx.input(0).raw_data();
  const void* features = ctx.input(ctx.num_inputs() - 1).raw_data();
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0, shape));
  return DispatchStatus(y->dtype(), FloatTypes(), [&]<typename T>(T) {
    return ForEach(ctx, shape.num_elements(),
                   LeakyElement<T>{static_cast<const T*>(values), static_cast<const T*>(features),
                                   y->data<T>(), alpha});
  });
}

}  // namespace
}  // namespace cuda

void RegisterCudaLeakyRelu(OpRegistry& ops) {
  const KernelOptions options = {.types = {{"T", DTypesOf(FloatTypes())}}, .attrs = {"alpha"}};
  cuda::AddKernel(ops, "LeakyRelu", cuda::LeakyKernel, options);
  cuda::AddKernel(ops, "LeakyReluGrad", cuda::LeakyKernel, options);
}

}  // namespace tenon
