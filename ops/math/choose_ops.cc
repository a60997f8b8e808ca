// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/broadcast_gradient.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/math/choose.h"
#include "ops/math/math_ops.h"
#include "ops/maths.h"

namespace tenon {
namespace {

constexpr double kChooseNs = 0.3;

/// out[i] = c[i] ? t[i * t_step] : e[i * e_step]. Without a branch, which would be foretold wrongly
/// as often as the condition changes.
template <typename T>
void ChooseLine(const bool* c, const T* t, int64_t t_step, const T* e, int64_t e_step, T* out,
                int64_t n) {
  if constexpr (!std::is_trivially_copyable_v<T>) {
    for (int64_t i = 0; i < n; ++i) out[i] = c[i] ? t[i * t_step] : e[i * e_step];
  } else if (t_step == 1 && e_step == 1) {
    TENON_SIMD
    for (int64_t i = 0; i < n; ++i) {
      const T a = t[i], b = e[i];
      out[i] = c[i] ? a : b;
    }
  } else if (t_step == 1) {
    const T b = *e;
    TENON_SIMD
    for (int64_t i = 0; i < n; ++i) {
      const T a = t[i];
      out[i] = c[i] ? a : b;
    }
  } else {
    const T a = *t;
    TENON_SIMD
    for (int64_t i = 0; i < n; ++i) {
      const T b = e[i * e_step];
      out[i] = c[i] ? a : b;
    }
  }
}

/// out = condition ? t : e, broadcast, where the condition counts as of `condition_shape`.
Status Choose(KernelContext& ctx, const Shape& condition_shape) {
  const Tensor &t = ctx.input(1), &e = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                         PlanBroadcast({&condition_shape, &t.shape(), &e.shape()}));
  const bool* condition = ctx.input(0).data<bool>();
  const void *const then = t.raw_data(), *const otherwise = e.raw_data();
  // In the memory of a value of its size, no element of which is read after it was written.
  const bool first = t.shape() == plan.shape && t.HasOneReference();
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(first ? 1 : 2, 0, plan.shape));
  const BroadcastPlan::Dim& inner = plan.inner();
  DispatchElement(y->dtype(), [&]<typename T>(T) {
    const T* a = static_cast<const T*>(then);
    const T* b = static_cast<const T*>(otherwise);
    T* out = static_cast<T*>(y->raw_data());
    const int64_t cs = inner.strides[0], as = inner.strides[1], bs = inner.strides[2];
    ForEachRun(plan, kChooseNs, [&](const int64_t* from, int64_t begin, int64_t n) {
      const bool* c = condition + from[0];
      const T *p = a + from[1], *q = b + from[2];
      if (cs == 0) {
        const T* chosen = *c ? p : q;
        const int64_t step = *c ? as : bs;
        for (int64_t i = 0; i < n; ++i) out[begin + i] = chosen[i * step];
      } else {
        ChooseLine(c, p, as, q, bs, out + begin, n);
      }
    });
  });
  return OkStatus();
}

/// Gives one of the values as it is.
Status ReturnChosen(KernelContext& ctx) {
  return ctx.Return(ctx.input(*ctx.input(0).data<bool>() ? 1 : 2));
}

Status SelectV2Kernel(KernelContext& ctx) {
  const Tensor &condition = ctx.input(0), &then = ctx.input(1), &otherwise = ctx.input(2);
  if (condition.rank() == 0 && then.shape() == otherwise.shape()) return ReturnChosen(ctx);
  return Choose(ctx, condition.shape());
}

Status SelectKernel(KernelContext& ctx) {
  const Shape &c = ctx.input(0).shape(), &t = ctx.input(1).shape(), &e = ctx.input(2).shape();
  TENON_ASSIGN_OR_RETURN(const Shape condition, SelectCondition(c, t, e));
  if (c.IsScalar()) return ReturnChosen(ctx);
  return Choose(ctx, condition);
}

Status SelectShape(ShapeContext& c) { return c.Return(c.Merged(1)); }

Status SelectV2Shape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape shape, BroadcastShapes(c.input(1), c.input(2)));
  return c.Return(BroadcastShapes(c.input(0), shape));
}

void SelectGrad(GradContext& g) {
  const Output c = g.in(0), zeros = ZerosLike(g.dy(0));
  g.dx(1) = Select(c, g.dy(0), zeros);
  g.dx(2) = Select(c, zeros, g.dy(0));
}

void SelectV2Grad(GradContext& g) {
  const Output c = g.in(0), zero = Const(0, {.dtype = g.dy(0).dtype()});
  g.dx(1) = SumToOperand(g.in(1), g.out(0), SelectV2(c, g.dy(0), zero));
  g.dx(2) = SumToOperand(g.in(2), g.out(0), SelectV2(c, zero, g.dy(0)));
}

// --- ClipByValue ---

Status ClipKernel(KernelContext& ctx, const Tensor& t) {
  TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanClip(ctx));
  const void* in = t.raw_data();
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0, t.shape()));
  const BroadcastPlan::Dim& inner = plan.inner();
  return DispatchStatus(t.dtype(), NumericTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    const T* x = static_cast<const T*>(in);
    const T *low = ctx.input(1).data<T>(), *high = ctx.input(2).data<T>();
    T* out = y->data<T>();
    ForEachRun(plan, kChooseNs, [&](const int64_t* from, int64_t begin, int64_t n) {
      const T *a = x + from[0], *lo = low + from[1], *hi = high + from[2];
      TENON_SIMD
      for (int64_t i = 0; i < n; ++i) {
        const C v = static_cast<C>(a[i * inner.strides[0]]);
        const C l = static_cast<C>(lo[i * inner.strides[1]]);
        const C h = static_cast<C>(hi[i * inner.strides[2]]);
        out[begin + i] = static_cast<T>(Clipped(v, l, h));
      }
    });
  });
}

void ClipGrad(GradContext& g) {
  const Output t = g.in(0), low = g.in(1), high = g.in(2);
  const Output below = t < low;
  const Output above = t > high;
  const Output zero = Const(0, {.dtype = g.dy(0).dtype()});
  g.dx(0) = SelectV2(LogicalOr(below, above), zero, g.dy(0));
  g.dx(1) = SumToOperand(low, t, SelectV2(below, g.dy(0), zero));
  g.dx(2) = SumToOperand(high, t, SelectV2(above, g.dy(0), zero));
}

}  // namespace

StatusOr<Shape> SelectCondition(const Shape& c, const Shape& t, const Shape& e) {
  if (t != e) {
    return InvalidArgument("'then' and 'else' must have the same shape, found ", t, " and ", e);
  }
  if (c.IsScalar() || c == t) return c;
  if (c.rank() != 1 || t.rank() < 1) {
    return InvalidArgument("'cond' must be a scalar, a vector, or of the shape of 'then' ", t,
                           ", but saw shape: ", c);
  }
  if (c.dim(0) != t.dim(0)) {
    return InvalidArgument("'cond' ", c, " must be as long as the first dimension of 'then' ", t);
  }
  // A vector chooses rows: as if it had the rank of the values.
  Shape condition = c;
  for (int i = 1; i < t.rank(); ++i) condition = condition.WithInsertedDim(i, 1);
  return condition;
}

StatusOr<BroadcastPlan> PlanClip(const KernelContext& ctx) {
  const Shape& t = ctx.input(0).shape();
  const Shape* const shapes[] = {&t, &ctx.input(1).shape(), &ctx.input(2).shape()};
  for (const Shape* limit : {shapes[1], shapes[2]}) {
    if (limit->rank() == 0 || *limit == t) continue;
    return InvalidArgument("clip_value_min and clip_value_max must be scalars or of the shape ", t,
                           " of the input, found ", *shapes[1], " and ", *shapes[2]);
  }
  return PlanBroadcast(shapes);
}

void RegisterSelect(OpRegistry& ops) {
  const Tensor mask = Tensor::Of<bool>(Shape{2, 3}, {true, false, true, false, false, true});
  const Tensor rows = Tensor::Vector<bool>({true, false});
  ops.Add("Select", SelectShape, SelectKernel)
      .Grad(SelectGrad)
      .Example({mask, Shape{2, 3}, Shape{2, 3}})
      .Example({rows, Shape{2, 3}, Shape{2, 3}})
      .Example({Tensor::Scalar(false), Shape{3}, Shape{3}});
  ops.Add("SelectV2", SelectV2Shape, SelectV2Kernel)
      .Grad(SelectV2Grad)
      .Example({mask, Shape{2, 3}, Shape{2, 3}})
      .Example({rows, Shape{3, 1}, Shape{}})
      .Example({mask, Shape{3}, Shape{2, 1}});
  ops.Add("ClipByValue", UnchangedShape, ClipKernel, {.types = {{"T", DTypesOf(NumericTypes())}}})
      .Grad(ClipGrad)
      .Example(
          {Tensor::Vector<double>({-3, -0.5, 0.5, 3}), Tensor::Scalar(-1.0), Tensor::Scalar(1.0)})
      .Example({Tensor::Of<double>(Shape{2, 2}, {-1, 0.2, 0.7, 2}), Tensor::Scalar(-0.5),
                Tensor::Of<double>(Shape{2, 2}, {0.6, 0.9, 0.6, 0.9})})
      .Example({Shape{2, 3}, Tensor::Scalar(0.0f), Tensor::Scalar(1.0f)})
      .Example({Shape{2, 3}, Tensor::Scalar(0), Tensor::Scalar(1)});
}

}  // namespace tenon
