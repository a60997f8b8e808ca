// SPDX-License-Identifier: Apache-2.0
#include "core/gradient/gradients.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/broadcast.h"
#include "ops/broadcast_gradient.h"
#include "ops/elements.h"

namespace tenon {
namespace {

Status BroadcastToKernel(KernelContext& ctx, const Tensor& x, const Shape& wanted) {
  if (x.shape() == wanted) return ctx.Return(x);
  TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcastTo(x.shape(), wanted));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, wanted));
  const bool repeats = plan.inner().strides[0] == 0;
  DispatchElement(x.dtype(), [&]<typename T>(T) {
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

Status BroadcastToShape(ShapeContext& c) { return c.Return(c.ConstantShape(1)); }

Status BroadcastArgsKernel(KernelContext& ctx, const Shape& s0, const Shape& s1) {
  TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast({&s0, &s1}));
  return ctx.Return(ShapeTensor(plan.shape, ctx.output_type(0)));
}

/// The axes along which each of two shapes is repeated to the common one. An axis where both have
/// size 1 is listed for both: summing over it does nothing.
Status BroadcastGradientArgsKernel(KernelContext& ctx, const Shape& s0, const Shape& s1) {
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
                           ctx.AllocateOutput(k, {static_cast<int64_t>(axes.size())}));
    WriteIntegers(axes, out);
  }
  return OkStatus();
}

Status VectorShapes(ShapeContext& c) { return c.ReturnForEach(PartialShape::OfRank(1)); }

}  // namespace

void RegisterBroadcastOps(OpRegistry& ops) {
  ops.Add("BroadcastTo", BroadcastToShape, BroadcastToKernel)
      .Grad([](GradContext& g) { g.dx(0) = SumToOperand(g.in(0), g.out(0), g.dy(0)); })
      .Example({Shape{3}, Tensor::Vector({2, 3})})
      .Example({Shape{2, 1}, Tensor::Vector<int64_t>({4, 2, 3})})
      .Example({Shape{}, Tensor::Vector({2, 2})});
  ops.Add("BroadcastArgs", VectorShapes, BroadcastArgsKernel,
          {.cheap = true, .memory = kHostMemory})
      .Example({Tensor::Vector({2, 1}), Tensor::Vector({3})});
  ops.Add("BroadcastGradientArgs", VectorShapes, BroadcastGradientArgsKernel,
          {.cheap = true, .memory = kHostMemory})
      .Example({Tensor::Vector({2, 3}), Tensor::Vector({3})})
      .Example({Tensor::Vector<int64_t>({1, 3, 1}), Tensor::Vector<int64_t>({1, 1, 1})});
}

}  // namespace tenon
