// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/array/moving_kernels.h"
#include "ops/array/one_hot.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/maths.h"

namespace tenon {
namespace {

Status FillShape(ShapeContext& c) {
  TENON_RETURN_IF_ERROR(c.WithRank(1, 0));
  return c.Return(c.ConstantShape(0));
}

using RangeTypes =
    TypeList<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t>;

/// How many values start, start + delta, ... lie before limit.
template <typename C>
StatusOr<int64_t> RangeSize(C start, C limit, C delta) {
  if (delta == C(0)) return InvalidArgument("Requires delta != 0: ", delta);
  if (delta > C(0) ? start > limit : start < limit) {
    return InvalidArgument("Requires start ", delta > C(0) ? "<=" : ">=", " limit when delta ",
                           delta > C(0) ? ">" : "<", " 0: ", start, "/", limit);
  }
  if constexpr (std::is_integral_v<C>) {
    // In unsigned arithmetic: the distance of two int64 may not fit in one.
    const uint64_t forward = static_cast<uint64_t>(limit) - static_cast<uint64_t>(start);
    const uint64_t distance = delta > 0 ? forward : -forward;
    const uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : -static_cast<uint64_t>(delta);
    const uint64_t size = distance / step + (distance % step != 0 ? 1 : 0);
    if (size <= static_cast<uint64_t>(INT64_MAX)) return static_cast<int64_t>(size);
  } else {
    const double size = std::ceil(std::abs((limit - start) / delta));
    if (size < 9.2e18) return static_cast<int64_t>(size);
  }
  return InvalidArgument("Requires ((limit - start) / delta) <= ", INT64_MAX);
}

template <typename T>
Status FillRange(KernelContext& ctx) {
  using C = ComputeType<T>;
  C value = C(ctx.input(0).scalar<T>());
  const C limit = C(ctx.input(1).scalar<T>()), delta = C(ctx.input(2).scalar<T>());
  TENON_ASSIGN_OR_RETURN(const int64_t size, RangeSize<C>(value, limit, delta));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, {size}));
  T* values = out->data<T>();
  SerialFor(size, 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      values[i] = T(value);
      value = Plus(value, delta);
    }
  });
  return OkStatus();
}

Status RangeKernel(KernelContext& ctx) {
  constexpr const char* kNames[] = {"start", "limit", "delta"};
  for (int i = 0; i < 3; ++i) {
    if (ctx.input(i).num_elements() == 1) continue;
    return InvalidArgument(kNames[i], " must be a scalar, not shape ", ctx.input(i).shape());
  }
  return DispatchStatus(ctx.output_type(0), RangeTypes(),
                        [&]<typename T>(T) { return FillRange<T>(ctx); });
}

Status RangeShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) TENON_RETURN_IF_ERROR(c.WithRank(i, 0));
  c.set_output(0, PartialShape::OfRank(1));
  for (int i = 0; i < 3; ++i) {
    if (c.constant(i) == nullptr || c.constant(i)->num_elements() != 1) return OkStatus();
  }
  return DispatchStatus(c.constant(0)->dtype(), RangeTypes(), [&]<typename T>(T) -> Status {
    const auto value = [&](int i) { return ComputeType<T>(c.constant(i)->scalar<T>()); };
    TENON_ASSIGN_OR_RETURN(const int64_t size, RangeSize(value(0), value(1), value(2)));
    return c.Return(PartialShape{size});
  });
}

StatusOr<int64_t> ReadNum(const Tensor& t) {
  TENON_ASSIGN_OR_RETURN(const int64_t n, ReadInteger(t, "num"));
  if (n <= 0) return InvalidArgument("Requires num > 0: ", n);
  return n;
}

Status LinSpaceKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const int64_t n, ReadNum(ctx.input(2)));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, {n}));
  return DispatchStatus(out->dtype(), FloatTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    const C start = C(ctx.input(0).scalar<T>()), stop = C(ctx.input(1).scalar<T>());
    const C step = n > 1 ? (stop - start) / C(n - 1) : C(0);
    T* values = out->data<T>();
    ParallelFor(n, 0.5, [=](int64_t begin, int64_t end) {
      TENON_SIMD
      for (int64_t i = begin; i < end; ++i) values[i] = T(start + step * C(i));
    });
    // Exactly, whatever the rounding of the step.
    if (n > 1) values[n - 1] = T(stop);
  });
}

Status LinSpaceShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) TENON_RETURN_IF_ERROR(c.WithRank(i, 0));
  if (c.constant(2) == nullptr) return c.Return(PartialShape::OfRank(1));
  TENON_ASSIGN_OR_RETURN(const int64_t n, ReadNum(*c.constant(2)));
  return c.Return(PartialShape{n});
}

/// The axis of OneHot among rank + 1 dimensions; -1 is the last.
StatusOr<int> OneHotAxis(int64_t axis, int rank) {
  if (axis == -1) return rank;
  if (axis >= 0 && axis <= rank) return static_cast<int>(axis);
  return InvalidArgument("Expected axis to be -1 or between [0, ", rank + 1,
                         "). But received: ", axis);
}

StatusOr<int64_t> ReadDepth(const Tensor& t) {
  TENON_ASSIGN_OR_RETURN(const int64_t depth, ReadInteger(t, "depth"));
  if (depth < 0) return InvalidArgument("depth must be non-negative, got: ", depth);
  return depth;
}

/// Bytes of the largest part of OneHot's result that is filled by itself.
constexpr int64_t kPartBytes = 256 << 10;

Status OneHotKernel(KernelContext& ctx, int64_t axis_attr) {
  const Tensor &indices = ctx.input(0), &on = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const OneHotPlan plan, PlanOneHot(ctx, axis_attr));
  const int64_t depth = plan.depth, inner = plan.inner;
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, plan.shape.dims()));
  if (out->num_elements() == 0) return OkStatus();
  using IndexTypes = TypeList<uint8_t, int8_t, int32_t, int64_t>;
  return DispatchStatus(indices.dtype(), IndexTypes(), [&]<typename I>(I) {
    const I* const index = indices.data<I>();
    DispatchElement(out->dtype(), [&]<typename T>(T) {
      const T& one = *static_cast<const T*>(on.raw_data());
      const T& other = *static_cast<const T*>(ctx.input(3).raw_data());
      T* const values = static_cast<T*>(out->raw_data());
      const int64_t size = depth * inner;
      const bool is_filled = size > kPartBytes / static_cast<int64_t>(sizeof(T));
      if (is_filled) FillElements(ctx.input(3), out);
      // A part is filled while it is in a cache, if it fits in one.
      const double cost =
          0.1 * static_cast<double>(size * sizeof(T)) + 2 * static_cast<double>(inner);
      ParallelFor(indices.num_elements() / inner, cost, [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) {
          if (o % kStepsBetweenLooks == 0 && Interrupted()) return;
          T* const part = values + o * size;
          if (!is_filled) std::fill_n(part, size, other);
          for (int64_t i = 0; i < inner; ++i) {
            if ((i + 1) % kStepsBetweenLooks == 0 && Interrupted()) return;
            const auto at = static_cast<int64_t>(index[o * inner + i]);
            if (at >= 0 && at < depth) part[at * inner + i] = one;
          }
        }
      });
    });
  });
}

Status OneHotShape(ShapeContext& c) {
  const PartialShape& indices = c.input(0);
  for (int i = 1; i < 4; ++i) TENON_RETURN_IF_ERROR(c.WithRank(i, 0));
  if (!indices.rank_known()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const int64_t wanted, c.Attr<int64_t>("axis"));
  TENON_ASSIGN_OR_RETURN(const int axis, OneHotAxis(wanted, indices.rank()));
  int64_t depth = PartialShape::kUnknownDim;
  if (c.constant(1) != nullptr) {
    TENON_ASSIGN_OR_RETURN(depth, ReadDepth(*c.constant(1)));
  }
  return c.Return(indices.WithInsertedDim(axis, depth));
}

}  // namespace

StatusOr<OneHotPlan> PlanOneHot(const KernelContext& ctx, int64_t axis_attr) {
  const Tensor& indices = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const int axis, OneHotAxis(axis_attr, indices.rank()));
  OneHotPlan plan;
  TENON_ASSIGN_OR_RETURN(plan.depth, ReadDepth(ctx.input(1)));
  plan.shape = indices.shape().WithInsertedDim(axis, plan.depth);
  plan.inner = Product(plan.shape.dims(), axis + 1, plan.shape.rank());
  return plan;
}

Status FillKernel(KernelContext& ctx, const Mover& mover) {
  TENON_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(0), "dims"));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  return mover.fill(ctx, ctx.input(1), out);
}

void RegisterGenerateOps(OpRegistry& ops) {
  ops.Add("Fill", FillShape, With<kHostMover, FillKernel>::Run)
      .Grad([](GradContext& g) { g.dx(1) = Sum(g.dy(0), Range(0, Rank(g.dy(0)), 1)); })
      .Example({Tensor::Vector({2, 3}), Shape{}});
  ops.Add("Range", RangeShape, RangeKernel, {.memory = kHostMemory})
      .Example({Tensor::Scalar(3), Tensor::Scalar(-4), Tensor::Scalar(-2)});
  ops.Add("LinSpace", LinSpaceShape, LinSpaceKernel)
      .Example({Tensor::Scalar(0.0f), Tensor::Scalar(1.0f), Tensor::Scalar(5)});
  ops.Add("OneHot", OneHotShape, OneHotKernel, {.attrs = {"axis"}})
      .Example({Tensor::Vector<int64_t>({0, 2, -1}), Tensor::Scalar(3), Tensor::Scalar(1.0f),
                Tensor::Scalar(0.0f)});
}

}  // namespace tenon
