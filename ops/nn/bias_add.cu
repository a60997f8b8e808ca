// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/bias_add.h"

#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/reduction.cuh"
#include "ops/cuda/register.h"

namespace tenon {
namespace cuda {
namespace {

struct AddBias {
  TENON_HD static auto Apply(auto x, auto bias) { return Plus(x, bias); }
};

Status BiasAddKernel(KernelContext& ctx, const std::string& data_format) {
  const Tensor &x = ctx.input(0), &bias = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBiasAdd(x, bias, data_format));
  TENON_ASSIGN_OR_RETURN(const BroadcastIndex<2> index, IndexBroadcast<2>(plan, kPack));
  const void* in = x.raw_data();
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0, plan.shape));
  if (index.count == 0) return OkStatus();
  return DispatchStatus(y->dtype(), RealTypes(), [&]<typename T>(T) {
    LaunchBinary<AddBias, T>(StreamOf(ctx), in, bias.raw_data(), y->raw_data(), index, {});
    return LaunchStatus();
  });
}

Status BiasAddV1Kernel(KernelContext& ctx) { return BiasAddKernel(ctx, "NHWC"); }

Status BiasAddGradKernel(KernelContext& ctx, const Tensor& dy, const std::string& data_format) {
  TENON_ASSIGN_OR_RETURN(const ReductionPlan plan, PlanBiasAddGrad(dy, data_format));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, plan.shape));
  return SumAlong(ctx, dy.dtype(), plan, dy.raw_data(), y->raw_data());
}

}  // namespace
}  // namespace cuda

void RegisterCudaBiasAdd(OpRegistry& ops) {
  const KernelOptions real = {.types = {{"T", DTypesOf(RealTypes())}}};
  const KernelOptions with_format = {.types = real.types, .attrs = {"data_format"}};
  cuda::AddKernel(ops, "BiasAdd", cuda::BiasAddKernel, with_format);
  cuda::AddKernel(ops, "BiasAddV1", cuda::BiasAddV1Kernel, real);
  cuda::AddKernel(ops, "BiasAddGrad", cuda::BiasAddGradKernel, with_format);
}

}  // namespace tenon
