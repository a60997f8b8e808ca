// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/element.cuh"
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/register.h"
#include "ops/cuda/strided_index.h"
#include "ops/elements.h"
#include "ops/math/choose.h"

namespace tenon {
namespace cuda {
namespace {

template <typename T>
struct ChooseElement {
  const bool* condition;
  const T *t, *e;
  T* out;
  StridedIndex<3> index;
  __device__ void operator()(int64_t i) const {
    int64_t from[3];
    index.At(i, from);
    out[i] = condition[from[0]] ? t[from[1]] : e[from[2]];
  }
};

Status Choose(KernelContext& ctx, const Shape& condition_shape) {
  const Tensor &t = ctx.input(1), &e = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                         PlanBroadcast({&condition_shape, &t.shape(), &e.shape()}));
  TENON_ASSIGN_OR_RETURN(const BroadcastIndex<3> index, IndexBroadcast<3>(plan, 1));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, plan.shape));
  Status status;
  const auto choose = [&]<typename T>(T) {
    static_cast<void>(
        status =
            ForEach(ctx, index.count,
                    ChooseElement<T>{ctx.input(0).data<bool>(), static_cast<const T*>(t.raw_data()),
                                     static_cast<const T*>(e.raw_data()),
                                     static_cast<T*>(y->raw_data()), index.index}));
  };
  DispatchBytes(t.dtype(), choose);
  return status;
}

Status SelectV2Kernel(KernelContext& ctx) { return Choose(ctx, ctx.input(0).shape()); }

Status SelectKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(
      const Shape condition,
      SelectCondition(ctx.input(0).shape(), ctx.input(1).shape(), ctx.input(2).shape()));
  return Choose(ctx, condition);
}

/// `out` may be `x`.
template <typename T>
struct ClipElement {
  const T *x, *low, *high;
  T* out;
  StridedIndex<3> index;
  __device__ void operator()(int64_t i) const {
    int64_t from[3];
    index.At(i, from);
    out[i] = Narrow<T>(Clipped(Widen(x[from[0]]), Widen(low[from[1]]), Widen(high[from[2]])));
  }
};

Status ClipKernel(KernelContext& ctx, const Tensor& t) {
  TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanClip(ctx));
  TENON_ASSIGN_OR_RETURN(const BroadcastIndex<3> index, IndexBroadcast<3>(plan, 1));
  const void* in = t.raw_data();
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0, plan.shape));
  return DispatchStatus(y->dtype(), RealTypes(), [&]<typename T>(T) {
    return ForEach(ctx, index.count,
                   ClipElement<T>{static_cast<const T*>(in), ctx.input(1).data<T>(),
                                  ctx.input(2).data<T>(), y->data<T>(), index.index});
  });
}

}  // namespace
}  // namespace cuda

void RegisterCudaSelect(OpRegistry& ops) {
  const KernelOptions plain = {.types = {{"T", DTypesOf(PlainTypes())}}};
  cuda::AddKernel(ops, "Select", cuda::SelectKernel, plain);
  cuda::AddKernel(ops, "SelectV2", cuda::SelectV2Kernel, plain);
  cuda::AddKernel(ops, "ClipByValue", cuda::ClipKernel, {.types = {{"T", DTypesOf(RealTypes())}}});
}

}  // namespace tenon
