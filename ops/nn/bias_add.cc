// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/bias_add.h"

#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/maths.h"
#include "ops/nn/nn_ops.h"

namespace tenon {
namespace {

int ChannelAxis(std::string_view data_format, int rank) {
  return data_format == "NCHW" ? 1 : rank - 1;
}

std::string DataFormat(const AttributeMap& attrs) {
  return attrs.GetOr<std::string>("data_format", "NHWC");
}

/// How many rows of channels there are where these are last.
int64_t RowsOfChannels(const Tensor& x) {
  return x.dim(x.rank() - 1) == 0 ? 0 : x.num_elements() / x.dim(x.rank() - 1);
}

Status BiasAddKernel(KernelContext& ctx, const std::string& data_format) {
  const Tensor &x = ctx.input(0), &bias = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBiasAdd(x, bias, data_format));
  const void* in = x.raw_data();
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0, x.shape()));
  AddBias(plan, ChannelAxis(data_format, y->rank()) == y->rank() - 1, in, bias, y);
  return OkStatus();
}

Status BiasAddV1Kernel(KernelContext& ctx) { return BiasAddKernel(ctx, "NHWC"); }

Status BiasAddGradKernel(KernelContext& ctx, const Tensor& dy, const std::string& data_format) {
  TENON_ASSIGN_OR_RETURN(const ReductionPlan plan, PlanBiasAddGrad(dy, data_format));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, plan.shape));
  SumAlong(dy.dtype(), plan, dy.raw_data(), y->raw_data());
  return OkStatus();
}

Status BiasAddShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape x, c.WithRankAtLeast(0, 2));
  TENON_ASSIGN_OR_RETURN(const PartialShape bias, c.WithRank(1, 1));
  if (!x.rank_known()) return OkStatus();
  const int axis = ChannelAxis(DataFormat(c.attrs()), x.rank());
  const auto channels = PartialShape{x.dim(axis)}.MergeWith(bias);
  if (channels.ok()) return c.Return(x.WithDim(axis, channels->dim(0)));
  return InvalidArgument("Must provide as many biases as channels: ", bias, " vs. ", x);
}

Status BiasAddGradShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape dy, c.WithRankAtLeast(0, 2));
  return c.Return(PartialShape{dy.dim(ChannelAxis(DataFormat(c.attrs()), dy.rank()))});
}

void GradOfBiasAdd(GradContext& g) {
  g.dx(0) = g.dy(0);
  g.dx(1) = BiasAddGrad(g.dy(0), {.data_format = DataFormat(g.node().attrs())});
}

/// The sums over all but the channels spread the gradient of each channel.
void GradOfBiasAddGrad(GradContext& g) {
  const Output x = g.in(0);
  Output dy = g.dy(0);
  if (DataFormat(g.node().attrs()) == "NCHW") {
    // [C] as [C, 1, ..., 1]: Shape(x) with all but its second entry replaced.
    const Output trailing = Slice(OnesLike(ShapeOf(x)), {2}, {-1});
    dy = Reshape(dy, ConcatV2({{-1}, trailing}, 0));
  }
  g.dx(0) = BroadcastTo(dy, ShapeVector(x));
}

}  // namespace

StatusOr<BroadcastPlan> PlanBiasAdd(const Tensor& x, const Tensor& bias,
                                    std::string_view data_format) {
  if (x.rank() < 2) return InvalidArgument("Input tensor must be at least 2D: ", x.shape());
  if (bias.rank() != 1) return InvalidArgument("Biases must be 1D: ", bias.shape());
  const int axis = ChannelAxis(data_format, x.rank());
  if (bias.dim(0) != x.dim(axis)) {
    return InvalidArgument("Must provide as many biases as channels: ", bias.shape(), " vs. ",
                           x.dim(axis), " in ", x.shape());
  }
  const Shape along(Concat(bias.shape().dims(), DimVector(x.rank() - axis - 1, 1)));
  return PlanBroadcast({&x.shape(), &along});
}

void AddBias(const BroadcastPlan& plan, bool channels_last, const void* x, const Tensor& bias,
             Tensor* y) {
  Dispatch(y->dtype(), NumericTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    const auto sum = [](T p, C addend) { return static_cast<T>(Plus(static_cast<C>(p), addend)); };
    const T *p = static_cast<const T*>(x), *b = bias.data<T>();
    T* const out = y->data<T>();
    if (channels_last) {
      // Few channels, often: a call for each row of them takes as long as the row.
      const int64_t channels = bias.dim(0);
      return ParallelFor(RowsOfChannels(*y), 0.3 * static_cast<double>(channels),
                         [=](int64_t begin, int64_t end) {
                           for (int64_t row = begin; row < end; ++row) {
                             const T* const from = p + row * channels;
                             T* const to = out + row * channels;
                             TENON_SIMD
                             for (int64_t c = 0; c < channels; ++c) {
                               to[c] = sum(from[c], static_cast<C>(b[c]));
                             }
                           }
                         });
    }
    ForEachRun(plan, 0.3, [&](const int64_t* from, int64_t begin, int64_t n) {
      const T *row = p + from[0], *q = b + from[1];
      T* const to = out + begin;
      if (plan.inner().strides[1] == 0) {
        const C addend = static_cast<C>(*q);
        TENON_SIMD
        for (int64_t i = 0; i < n; ++i) to[i] = sum(row[i], addend);
      } else {
        TENON_SIMD
        for (int64_t i = 0; i < n; ++i) to[i] = sum(row[i], static_cast<C>(q[i]));
      }
    });
  });
}

StatusOr<ReductionPlan> PlanBiasAddGrad(const Tensor& dy, std::string_view data_format) {
  if (dy.rank() < 2) return InvalidArgument("Input tensor must be at least 2D: ", dy.shape());
  AxisFlags reduced(dy.rank(), true);
  reduced[ChannelAxis(data_format, dy.rank())] = false;
  return PlanReduction(dy.shape(), reduced, false);
}

void RegisterBiasAdd(OpRegistry& ops) {
  const KernelOptions numeric = {.types = {{"T", DTypesOf(NumericTypes())}}};
  const KernelOptions with_format = {.types = numeric.types, .attrs = {"data_format"}};
  const AttributeMap first = {{"data_format", "NCHW"}};
  ops.Add("BiasAdd", BiasAddShape, BiasAddKernel, with_format)
      .Grad(GradOfBiasAdd)
      .Example({Shape{2, 3}, Shape{3}})
      .Example({Shape{2, 3, 2, 2}, Shape{3}}, first);
  ops.Add("BiasAddV1", BiasAddShape, BiasAddV1Kernel, numeric)
      .Grad(GradOfBiasAdd)
      .Example({Shape{2, 3}, Shape{3}});
  ops.Add("BiasAddGrad", BiasAddGradShape, BiasAddGradKernel, with_format)
      .Grad(GradOfBiasAddGrad)
      .Example({Shape{4, 3}})
      .Example({Shape{2, 3, 2, 2}}, first);
}

}  // namespace tenon
