// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/maths.h"
#include "ops/nn/nn_ops.h"

namespace tenon {
namespace {

/// Input 0, where the last input (the features) is not above 0 times alpha: LeakyRelu, and its
/// gradient, which has the gradients first.
Status LeakyKernel(KernelContext& ctx, const Tensor& x, float alpha) {
  TENON_RETURN_IF_ERROR(CheckSameShape(ctx));
  const void *values = x.raw_data(), *features = ctx.input(ctx.num_inputs() - 1).raw_data();
  const int64_t n = x.num_elements();
  const DType type = x.dtype();
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0, x.shape()));
  return DispatchStatus(type, FloatTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    const T *in = static_cast<const T*>(values), *f = static_cast<const T*>(features);
    T* out = y->data<T>();
    const C slope = C(T(alpha));  // as exact as a T is
    ParallelFor(n, 0.4, [=](int64_t begin, int64_t end) {
      TENON_SIMD
      for (int64_t i = begin; i < end; ++i) {
        out[i] = C(f[i]) > 0 ? in[i] : T(C(in[i]) * slope);
      }
    });
  });
}

void LeakyReluGradient(GradContext& g) {
  g.dx(0) = LeakyReluGrad(g.dy(0), g.in(0), {.alpha = g.Attr<float>("alpha")});
}

/// Features have no gradient: they only choose.
void LeakyReluGradGradient(GradContext& g) {
  g.dx(0) = LeakyReluGrad(g.dy(0), g.in(1), {.alpha = g.Attr<float>("alpha")});
}

}  // namespace

void RegisterLeakyRelu(OpRegistry& ops) {
  ops.Add("LeakyRelu", UnchangedShape, LeakyKernel, {.attrs = {"alpha"}})
      .InDomain(0.3, 2)
      .Grad(LeakyReluGradient)
      .Example({Shape{2, 3}})
      .Example({Tensor::Vector<double>({-1.5, 0.5, -0.25})});
  ops.Add("LeakyReluGrad", MergedShape, LeakyKernel, {.attrs = {"alpha"}})
      .InDomain(0.3, 2)
      .Grad(LeakyReluGradGradient)
      .Example({Shape{2, 3}, Shape{2, 3}});
}

}  // namespace tenon
