// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/reduction.cuh"
#include "ops/cuda/register.h"

namespace tenon {

Status cuda::SumAlong(KernelContext& ctx, DType type, const ReductionPlan& plan, const void* in,
                      void* out) {
  return DispatchStatus(type, RealTypes(), [&]<typename T>(T) {
    return ReduceAlong<SumReducer<T>, T>(ctx, plan, static_cast<const T*>(in),
                                         static_cast<T*>(out));
  });
}

void RegisterCudaSums(OpRegistry& ops) { cuda::AddReduction<SumReducer>(ops, "Sum", RealTypes()); }

}  // namespace tenon
