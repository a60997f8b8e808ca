// SPDX-License-Identifier: Apache-2.0
#include "core/kernel.h"
#include "ops/arguments.h"
#include "ops/broadcast.h"
#include "ops/composition.h"
#include "ops/maths.h"
#include "ops/nn/nn_ops.h"
#include "ops/math/reduction.h"
#include "ops/nn/register.h"

namespace tenon {
namespace {

bool ChannelsFirst(const AttributeMap& attrs) {
  return attrs.GetOr<std::string>("data_format", "NHWC") == "NCHW";
}

int ChannelAxis(bool channels_first, int rank) { return channels_first ? 1 : rank - 1; }

class BiasAddCpu final : public Kernel {
 public:
  explicit BiasAddCpu(KernelConstruction& c)
      : Kernel(c), channels_first_(ChannelsFirst(c.attrs())) {}

  Status Compute(KernelContext& ctx) const override {
    const Tensor &x = ctx.input(0), &bias = ctx.input(1);
    if (x.rank() < 2) {
      return InvalidArgument("Input tensor must be at least 2D: ", x.shape().ToString());
    }
    if (bias.rank() != 1) {
      return InvalidArgument("Biases must be 1D: ", bias.shape().ToString());
    }
    const int axis = ChannelAxis(channels_first_, x.rank());
    if (bias.dim(0) != x.dim(axis)) {
      return InvalidArgument("Must provide as many biases as the channel dimension of the input "
                             "tensor: ", bias.shape().ToString(), " vs. ", x.dim(axis), " in ",
                             x.shape().ToString());
    }
    Shape along = bias.shape();
    for (int i = axis + 1; i < x.rank(); ++i) along = along.WithInsertedDim(along.rank(), 1);
    const Shape* const shapes[] = {&x.shape(), &along};
    TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast(shapes));
    const void* in = x.raw_data();
    TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0, x.shape()));
    Dispatch(x.dtype(), NumericTypes(), [&](auto zero) {
      using T = decltype(zero);
      using C = ComputeType<T>;
      const int64_t step = plan.inner().strides[1];
      const T* b = bias.data<T>();
      ForEachRun(plan, 0.3, [&](const int64_t* from, int64_t begin, int64_t n) {
        const T* p = static_cast<const T*>(in) + from[0];
        const T* q = b + from[1];
        T* out = y->data<T>() + begin;
        if (step == 0) {
          const C addend = static_cast<C>(*q);
          TENON_SIMD
          for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(Plus(static_cast<C>(p[i]), addend));
        } else {
          TENON_SIMD
          for (int64_t i = 0; i < n; ++i) {
            out[i] = static_cast<T>(Plus(static_cast<C>(p[i]), static_cast<C>(q[i])));
          }
        }
      });
    });
    return OkStatus();
  }

 private:
  const bool channels_first_;
};

class BiasAddGradCpu final : public Kernel {
 public:
  explicit BiasAddGradCpu(KernelConstruction& c)
      : Kernel(c), channels_first_(ChannelsFirst(c.attrs())) {}

  Status Compute(KernelContext& ctx) const override {
    const Tensor& dy = ctx.input(0);
    if (dy.rank() < 2) {
      return InvalidArgument("Input tensor must be at least 2D: ", dy.shape().ToString());
    }
    std::vector<bool> reduced(dy.rank(), true);
    reduced[ChannelAxis(channels_first_, dy.rank())] = false;
    const ReductionPlan plan = PlanReduction(dy.shape(), reduced, false);
    TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, plan.shape));
    SumAlong(dy.dtype(), plan, dy.raw_data(), y->raw_data());
    return OkStatus();
  }

 private:
  const bool channels_first_;
};

Status BiasAddShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape x, c.WithRankAtLeast(0, 2));
  TENON_ASSIGN_OR_RETURN(const PartialShape bias, c.WithRank(1, 1));
  if (!x.rank_known()) return OkStatus();
  const int axis = ChannelAxis(ChannelsFirst(c.attrs()), x.rank());
  if (bias.dim(0) >= 0 && x.dim(axis) >= 0 && bias.dim(0) != x.dim(axis)) {
    return InvalidArgument("Must provide as many biases as channels: ", bias.ToString(), " vs. ",
                           x.ToString());
  }
  DimVector dims(x.dims().begin(), x.dims().end());
  if (dims[axis] < 0) dims[axis] = bias.dim(0);
  c.set_output(0, PartialShape(absl::Span<const int64_t>(dims)));
  return OkStatus();
}

Status BiasAddGradShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape dy, c.WithRankAtLeast(0, 2));
  const int64_t channels =
      dy.rank_known() ? dy.dim(ChannelAxis(ChannelsFirst(c.attrs()), dy.rank())) : -1;
  c.set_output(0, PartialShape{channels});
  return OkStatus();
}

void GradOfBiasAdd(GradContext& g) {
  g.dx(0) = g.dy(0);
  g.dx(1) = BiasAddGrad(g.dy(0), {.data_format = g.Attr<std::string>("data_format", "NHWC")});
}

/// The sums over all but the channels spread the gradient of each channel.
void GradOfBiasAddGrad(GradContext& g) {
  const Output x = g.in(0);
  Output dy = g.dy(0);
  if (ChannelsFirst(g.node().attrs())) {
    // [C] as [C, 1, ..., 1]: Shape(x) with all but its second entry replaced.
    const Output shape = ShapeOf(x);
    const Output trailing = Slice(OnesLike(shape), {2}, {-1});
    const Output along = ConcatV2({{-1}, trailing}, 0);
    dy = Reshape(dy, along);
  }
  g.dx(0) = BroadcastTo(dy, ShapeVector(x));
}

}  // namespace

void RegisterBiasAdd(OpRegistry& ops) {
  const KernelOptions numeric = {{{"T", DTypesOf(NumericTypes())}}, {}};
  const AttributeMap first = {{"data_format", "NCHW"}};
  ops.Get("BiasAdd")
      .Shape(BiasAddShape).Kernel<BiasAddCpu>(kCpu, numeric).Grad(GradOfBiasAdd)
      .Example({Shape{2, 3}, Shape{3}})
      .Example({Shape{2, 3, 2, 2}, Shape{3}}, first);
  ops.Get("BiasAddV1")
      .Shape(BiasAddShape).Kernel<BiasAddCpu>(kCpu, numeric).Grad(GradOfBiasAdd)
      .Example({Shape{2, 3}, Shape{3}});
  ops.Get("BiasAddGrad")
      .Shape(BiasAddGradShape).Kernel<BiasAddGradCpu>(kCpu, numeric).Grad(GradOfBiasAddGrad)
      .Example({Shape{4, 3}})
      .Example({Shape{2, 3, 2, 2}}, first);
}

}  // namespace tenon
