// SPDX-License-Identifier: Apache-2.0
#include "ops/arguments.h"
#include "ops/cuda/reduction.cuh"
#include "ops/cuda/register.h"

namespace tenon {
namespace cuda {
namespace {

/// How many tensors are added up at once.
constexpr int kAddends = 8;

/// `out` may be the first addend.
template <typename T>
struct AddElements {
  const T* in[kAddends];
  int count;
  T* out;
  __device__ void operator()(int64_t i) const {
    auto sum = Widen(in[0][i]);
#pragma unroll
    for (int k = 1; k < kAddends; ++k) {
      if (k < count) sum = Plus(sum, Widen(in[k][i]));
    }
    out[i] = Narrow<T>(sum);
  }
};

Status AddNKernel(KernelContext& ctx) {
  TENON_RETURN_IF_ERROR(CheckSameShape(ctx));
  if (ctx.num_inputs() == 1) return ctx.Return(ctx.input(0));
  std::vector<const void*> in;
  for (int k = 0; k < ctx.num_inputs(); ++k) in.push_back(ctx.input(k).raw_data());
  const Shape shape = ctx.input(0).shape();
  TENON_ASSIGN_OR_RETURN(Tensor * sum, ctx.ForwardOrAllocate(0, 0, shape));
  return DispatchStatus(sum->dtype(), RealTypes(), [&]<typename T>(T) -> Status {
    // The sum so far is the first addend of the next ones.
    for (size_t first = 0; first + 1 < in.size(); first += kAddends - 1) {
      AddElements<T> add{{}, 0, sum->data<T>()};
      for (size_t k = first; k < in.size() && add.count < kAddends; ++k) {
        add.in[add.count++] = static_cast<const T*>(in[k]);
      }
      if (first > 0) add.in[0] = add.out;
      TENON_RETURN_IF_ERROR(ForEach(ctx, shape.num_elements(), add));
    }
    return OkStatus();
  });
}

/// Half the sum of squares.
template <typename T>
struct L2Reducer {
  using Acc = double;
  TENON_HD static double Start() { return 0; }
  TENON_HD static double Of(double x) { return x * x; }
  TENON_HD static double Merge(double a, double b) { return a + b; }
  TENON_HD static double Finish(double acc, int64_t) { return acc / 2; }
};

Status L2LossKernel(KernelContext& ctx, const Tensor& x) {
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, Shape()));
  const ReductionPlan plan = PlanReduction(Shape{x.num_elements()}, {true}, false);
  return DispatchStatus(x.dtype(), FloatTypes(), [&]<typename T>(T) {
    return ReduceAlong<L2Reducer<T>, T>(ctx, plan, x.data<T>(), y->data<T>());
  });
}

}  // namespace
}  // namespace cuda

void RegisterCudaAccumulate(OpRegistry& ops) {
  cuda::AddKernel(ops, "AddN", cuda::AddNKernel, {.types = {{"T", DTypesOf(RealTypes())}}});
  cuda::AddKernel(ops, "L2Loss", cuda::L2LossKernel, {.types = {{"T", DTypesOf(FloatTypes())}}});
}

}  // namespace tenon
