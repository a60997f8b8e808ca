// SPDX-License-Identifier: Apache-2.0
#include "ops/arguments.h"
#include "ops/broadcast.h"
#include "ops/broadcast_gradient.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/inline_kernel.h"
#include "ops/array/register.h"

namespace tenon {
namespace {

Status BroadcastToCpu(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const Shape wanted, ReadShape(ctx.input(1), "shape"));
  if (x.shape() == wanted) {
    ctx.set_output(0, x);
    return OkStatus();
  }
  const Shape* const shapes[] = {&x.shape(), &wanted};
  TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast(shapes));
  if (!(plan.shape == wanted)) {
    return InvalidArgument("Incompatible shapes: ", x.shape().ToString(), " vs. ",
                           wanted.ToString(), ": the first does not broadcast to the second");
  }
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, wanted));
  const bool repeats = plan.inner().strides[0] == 0;
  DispatchElement(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* in = static_cast<const T*>(x.raw_data());
    T* out = static_cast<T*>(y->raw_data());
    ForEachRun(plan, 0.3, [&](const int64_t* from, int64_t begin, int64_t n) {
      if (repeats) {
        std::fill_n(out + begin, n, in[from[0]]);
      } else {
        std::copy_n(in + from[0], n, out + begin);
      }
    });
  });
  return OkStatus();
}

Status BroadcastToShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(PartialShape shape, c.ConstantShape(1));
  c.set_output(0, std::move(shape));
  return OkStatus();
}

void BroadcastToGrad(GradContext& g) {
  Output unused;
  g.dx(0) = g.dy(0);
  SumToOperands(g.in(0), g.out(0), &g.dx(0), &unused);
}

/// The axes along which each of two shapes is repeated to the common one. An axis where both have
/// size 1 is listed for both: summing over it does nothing.
Status BroadcastGradientArgsCpu(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const Shape s0, ReadShape(ctx.input(0), "s0"));
  TENON_ASSIGN_OR_RETURN(const Shape s1, ReadShape(ctx.input(1), "s1"));
  const Shape* const shapes[] = {&s0, &s1};
  TENON_RETURN_IF_ERROR(PlanBroadcast(shapes));
  const int rank = std::max(s0.rank(), s1.rank());
  for (int k = 0; k < 2; ++k) {
    DimVector axes;
    for (int i = 0; i < rank && !(s0 == s1); ++i) {
      const int own = i - (rank - shapes[k]->rank());
      if (own < 0 || shapes[k]->dim(own) == 1) axes.push_back(i);
    }
    TENON_ASSIGN_OR_RETURN(Tensor * out,
                           ctx.AllocateOutput(k, Shape{static_cast<int64_t>(axes.size())}));
    for (size_t i = 0; i < axes.size(); ++i) {
      if (out->dtype() == DType::kInt32) {
        out->data<int32_t>()[i] = static_cast<int32_t>(axes[i]);
      } else {
        out->data<int64_t>()[i] = axes[i];
      }
    }
  }
  return OkStatus();
}

Status TwoVectors(ShapeContext& c) {
  c.set_output(0, PartialShape::OfRank(1));
  c.set_output(1, PartialShape::OfRank(1));
  return OkStatus();
}

}  // namespace

void RegisterBroadcastOps(OpRegistry& ops) {
  ops.Get("BroadcastTo")
      .Shape(BroadcastToShape).Grad(BroadcastToGrad)
      .Kernel(kCpu, BroadcastToCpu, {{}, {"shape"}})
      .Example({Shape{3}, Tensor::Vector<int32_t>({2, 3})})
      .Example({Shape{2, 1}, Tensor::Vector<int64_t>({4, 2, 3})})
      .Example({Shape{}, Tensor::Vector<int32_t>({2, 2})});
  ops.Get("BroadcastGradientArgs")
      .Shape(TwoVectors).NotDifferentiable()
      .Kernel<InlineKernel<BroadcastGradientArgsCpu>>(kCpu, {{}, {"s0", "s1", "r0", "r1"}})
      .Example({Tensor::Vector<int32_t>({2, 3}), Tensor::Vector<int32_t>({3})})
      .Example({Tensor::Vector<int64_t>({1, 3, 1}), Tensor::Vector<int64_t>({1, 1, 1})});
}

}  // namespace tenon
