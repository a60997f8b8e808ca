// SPDX-License-Identifier: Apache-2.0
#include "core/parallel.h"
#include "ops/broadcast.h"
#include "ops/broadcast_gradient.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/maths.h"
#include "ops/math/register.h"

namespace tenon {
namespace {

/// out = condition ? t : e under a plan for the operands (condition, t, e).
Status Choose(KernelContext& ctx, const BroadcastPlan& plan) {
  const Tensor& t = ctx.input(1);
  const Tensor& e = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, plan.shape));
  const bool* condition = ctx.input(0).data<bool>();
  const BroadcastPlan::Dim& inner = plan.inner();
  DispatchElement(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* a = static_cast<const T*>(t.raw_data());
    const T* b = static_cast<const T*>(e.raw_data());
    T* out = static_cast<T*>(y->raw_data());
    const int64_t cs = inner.strides[0], as = inner.strides[1], bs = inner.strides[2];
    ForEachRun(plan, 0.5, [&](const int64_t* from, int64_t begin, int64_t n) {
      const bool* c = condition + from[0];
      const T *p = a + from[1], *q = b + from[2];
      if (cs == 0) {
        const T* chosen = *c ? p : q;
        const int64_t step = *c ? as : bs;
        for (int64_t i = 0; i < n; ++i) out[begin + i] = chosen[i * step];
      } else if (as == 1 && bs == 1) {
        for (int64_t i = 0; i < n; ++i) out[begin + i] = c[i] ? p[i] : q[i];
      } else {
        for (int64_t i = 0; i < n; ++i) out[begin + i] = c[i] ? p[i * as] : q[i * bs];
      }
    });
  });
  return OkStatus();
}

Status SelectV2Cpu(KernelContext& ctx) {
  const Shape* const shapes[] = {&ctx.input(0).shape(), &ctx.input(1).shape(),
                                 &ctx.input(2).shape()};
  TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast(shapes));
  return Choose(ctx, plan);
}

Status SelectCpu(KernelContext& ctx) {
  const Shape &c = ctx.input(0).shape(), &t = ctx.input(1).shape(), &e = ctx.input(2).shape();
  if (!(t == e)) {
    return InvalidArgument("'then' and 'else' must have the same size. but received: ",
                           t.ToString(), " vs. ", e.ToString());
  }
  if (c.IsScalar()) {
    ctx.set_output(0, *ctx.input(0).data<bool>() ? ctx.input(1) : ctx.input(2));
    return OkStatus();
  }
  // A vector chooses rows: as if it had the rank of the values.
  Shape condition = c;
  if (!(c == t)) {
    if (c.rank() != 1 || t.rank() < 1) {
      return InvalidArgument("'cond' must be a scalar, a vector, or of the shape of 'then' ",
                             t.ToString(), ", but saw shape: ", c.ToString());
    }
    if (c.dim(0) != t.dim(0)) {
      return InvalidArgument("Number of batches of 'then' must match size of 'cond', but saw: ",
                             t.dim(0), " vs. ", c.dim(0));
    }
    for (int i = 1; i < t.rank(); ++i) condition = condition.WithInsertedDim(i, 1);
  }
  const Shape* const shapes[] = {&condition, &t, &e};
  TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast(shapes));
  return Choose(ctx, plan);
}

Status SelectShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(PartialShape shape, c.input(1).MergeWith(c.input(2)));
  c.set_output(0, std::move(shape));
  return OkStatus();
}

Status SelectV2Shape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(PartialShape shape, BroadcastShapes(c.input(1), c.input(2)));
  TENON_ASSIGN_OR_RETURN(shape, BroadcastShapes(c.input(0), shape));
  c.set_output(0, std::move(shape));
  return OkStatus();
}

void SelectGrad(GradContext& g) {
  const Output c = g.in(0);
  const Output zeros = ZerosLike(g.dy(0));
  g.dx(1) = Select(c, g.dy(0), zeros);
  g.dx(2) = Select(c, zeros, g.dy(0));
}

void SelectV2Grad(GradContext& g) {
  const Output c = g.in(0);
  const Output zero = Const(0, {.dtype = g.dy(0).dtype()});
  Output& dt = g.dx(1);
  Output& de = g.dx(2);
  Output unused;
  dt = SelectV2(c, g.dy(0), zero);
  de = SelectV2(c, zero, g.dy(0));
  SumToOperands(g.in(1), g.out(0), &dt, &unused);
  SumToOperands(g.in(2), g.out(0), &de, &unused);
}

// --- ClipByValue ---

Status ClipCpu(KernelContext& ctx) {
  const Tensor& t = ctx.input(0);
  const Shape* const shapes[] = {&t.shape(), &ctx.input(1).shape(), &ctx.input(2).shape()};
  for (const Shape* limit : {shapes[1], shapes[2]}) {
    if (limit->rank() == 0 || *limit == t.shape()) continue;
    return InvalidArgument("clip_value_min and clip_value_max must be either of the same shape as "
                           "input, or a scalar. input shape: ", t.shape().ToString(),
                           ", clip_value_min shape: ", shapes[1]->ToString(),
                           ", clip_value_max shape: ", shapes[2]->ToString());
  }
  TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast(shapes));
  const void* in = t.raw_data();
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0, t.shape()));
  const BroadcastPlan::Dim& inner = plan.inner();
  Dispatch(t.dtype(), RealTypes(), [&](auto zero) {
    using T = decltype(zero);
    using C = ComputeType<T>;
    const T* x = static_cast<const T*>(in);
    const T *low = ctx.input(1).data<T>(), *high = ctx.input(2).data<T>();
    T* out = y->data<T>();
    ForEachRun(plan, 0.5, [&](const int64_t* from, int64_t begin, int64_t n) {
      const T *a = x + from[0], *lo = low + from[1], *hi = high + from[2];
      TENON_SIMD
      for (int64_t i = 0; i < n; ++i) {
        const C v = static_cast<C>(a[i * inner.strides[0]]);
        const C l = static_cast<C>(lo[i * inner.strides[1]]);
        const C h = static_cast<C>(hi[i * inner.strides[2]]);
        const C lowered = h < v ? h : v;
        out[begin + i] = static_cast<T>(lowered < l ? l : lowered);
      }
    });
  });
  return OkStatus();
}

void ClipGrad(GradContext& g) {
  const Output t = g.in(0), low = g.in(1), high = g.in(2);
  const Output below = Less(t, low), above = Greater(t, high);
  const Output zero = Const(0, {.dtype = g.dy(0).dtype()});
  Output unused;
  g.dx(0) = SelectV2(LogicalOr(below, above), zero, g.dy(0));
  g.dx(1) = SelectV2(below, g.dy(0), zero);
  g.dx(2) = SelectV2(above, g.dy(0), zero);
  SumToOperands(low, t, &g.dx(1), &unused);
  SumToOperands(high, t, &g.dx(2), &unused);
}

}  // namespace

void RegisterSelect(OpRegistry& ops) {
  const Tensor mask = Tensor::Of<bool>(Shape{2, 3}, {true, false, true, false, false, true});
  const Tensor rows = Tensor::Vector<bool>({true, false});
  ops.Get("Select")
      .Shape(SelectShape).Kernel(kCpu, SelectCpu).Grad(SelectGrad)
      .Example({mask, Shape{2, 3}, Shape{2, 3}})
      .Example({rows, Shape{2, 3}, Shape{2, 3}})
      .Example({Tensor::Scalar(false), Shape{3}, Shape{3}});
  ops.Get("SelectV2")
      .Shape(SelectV2Shape).Kernel(kCpu, SelectV2Cpu).Grad(SelectV2Grad)
      .Example({mask, Shape{2, 3}, Shape{2, 3}})
      .Example({rows, Shape{3, 1}, Shape{}})
      .Example({mask, Shape{3}, Shape{2, 1}});
  ops.Get("ClipByValue")
      .Shape(UnchangedShape).Grad(ClipGrad)
      .Kernel(kCpu, ClipCpu, {{{"T", DTypesOf(RealTypes())}}, {}})
      .Example({Tensor::Vector<double>({-3, -0.5, 0.5, 3}), Tensor::Scalar(-1.0),
                Tensor::Scalar(1.0)})
      .Example({Tensor::Of<double>(Shape{2, 2}, {-1, 0.2, 0.7, 2}), Tensor::Scalar(-0.5),
                Tensor::Of<double>(Shape{2, 2}, {0.6, 0.9, 0.6, 0.9})})
      .Example({Shape{2, 3}, Tensor::Scalar(0.0f), Tensor::Scalar(1.0f)})
      .Example({Shape{2, 3}, Tensor::Scalar(0), Tensor::Scalar(1)});
}

}  // namespace tenon
