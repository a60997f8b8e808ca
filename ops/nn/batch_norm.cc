// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "core/counted_memory.h"
#include "core/interruption.h"
#include "core/op_registry.h"
#include "core/parallel.h"
#include "ops/composition.h"
#include "ops/maths.h"
#include "ops/nn/nn_ops.h"

namespace tenon {
namespace {

using BatchNormTypes = TypeList<float, Half, BFloat16>;

/// Guess of what an element costs.
constexpr double kElementNs = 0.5;
/// Elements of a channel that are added up in float; the sums of these in double.
constexpr int64_t kFloatSum = 512;

/// An image as [outer, channels, inner].
struct ChannelLayout {
  int64_t outer = 1, channels = 0, inner = 1;

  int64_t count() const { return outer * inner; }
  int64_t row() const { return channels * inner; }

  /// Calls fn(element, channel) for the elements of rows [begin, end).
  template <typename Fn>
  void ForEach(int64_t begin, int64_t end, Fn fn) const {
    for (int64_t o = begin; o < end; ++o) {
      if (inner == 1) {
        TENON_SIMD
        for (int64_t c = 0; c < channels; ++c) fn(o * channels + c, c);
        continue;
      }
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t first = o * row() + c * inner;
        TENON_SIMD
        for (int64_t i = first; i < first + inner; ++i) fn(i, c);
      }
    }
  }

  /// to[i] = fn(i, channel).
  template <typename T, typename Fn>
  void Map(T* to, Fn fn) const {
    ParallelFor(outer, kElementNs * static_cast<double>(row()), [&](int64_t begin, int64_t end) {
      ForEach(begin, end, [&](int64_t i, int64_t c) { to[i] = static_cast<T>(fn(i, c)); });
    });
  }

  /// For each of the functions: sums[c] = the sum of fn(i, c) over channel c / divisor, in an order
  /// that depends on the layout alone. What they read of a block of rows is read from memory once.
  template <typename... Fn>
  void Sum(std::array<float*, sizeof...(Fn)> sums, double divisor, Fn... fn) const {
    const int64_t rows = std::max<int64_t>(1, kFloatSum / inner);
    const int64_t blocks = (outer + rows - 1) / rows;
    CountedVector<float> parts(blocks * channels * int64_t{sizeof...(Fn)});
    const double cost = kElementNs * static_cast<double>(std::min(rows, outer) * row());
    ParallelFor(blocks, cost, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        float* part = parts.data() + b * channels;
        ((AddRows(b * rows, std::min(outer, (b + 1) * rows), part, fn), part += blocks * channels),
         ...);
      }
    });
    for (size_t k = 0; k < sums.size(); ++k) {
      const float* const part = parts.data() + static_cast<int64_t>(k) * blocks * channels;
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int64_t b = 0; b < blocks; ++b) sum += part[b * channels + c];
        sums[k][c] = static_cast<float>(sum / divisor);
      }
    }
  }

 private:
  template <typename Fn>
  void AddRows(int64_t begin, int64_t end, float* sums, Fn fn) const {
    if (inner == 1) {
      return ForEach(begin, end, [&](int64_t i, int64_t c) { sums[c] += fn(i, c); });
    }
    for (int64_t o = begin; o < end && !Interrupted(); ++o) {
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t first = o * row() + c * inner;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = first; i < first + inner; ++i) sum += fn(i, c);
        sums[c] += sum;
      }
    }
  }
};

bool ChannelsFirst(std::string_view data_format) { return data_format[1] == 'C'; }

StatusOr<ChannelLayout> LayoutOf(const Tensor& x, std::string_view data_format) {
  if (x.rank() != 4 && x.rank() != 5) {
    return InvalidArgument("input must be 4 or 5-dimensional: ", x.shape());
  }
  ChannelLayout l;
  const int axis = ChannelsFirst(data_format) ? 1 : x.rank() - 1;
  l.channels = x.dim(axis);
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) (i < axis ? l.outer : l.inner) *= x.dim(i);
  }
  return l;
}

Status CheckPerChannel(std::string_view what, const Tensor& t, const ChannelLayout& l) {
  if (t.rank() == 1 && t.dim(0) == l.channels) return OkStatus();
  return InvalidArgument(what, " must have an element for each of the ", l.channels,
                         " channels of x, found shape ", t.shape());
}

Status BatchNormKernel(KernelContext& ctx, float epsilon, float factor,
                       const std::string& data_format, bool training) {
  const Tensor &x = ctx.input(0), &scale = ctx.input(1), &offset = ctx.input(2);
  const Tensor &old_mean = ctx.input(3), &old_variance = ctx.input(4);
  TENON_ASSIGN_OR_RETURN(const ChannelLayout l, LayoutOf(x, data_format));
  TENON_RETURN_IF_ERROR(CheckPerChannel("scale", scale, l));
  TENON_RETURN_IF_ERROR(CheckPerChannel("offset", offset, l));
  if (!training || factor != 1) {
    TENON_RETURN_IF_ERROR(CheckPerChannel("mean", old_mean, l));
    TENON_RETURN_IF_ERROR(CheckPerChannel("variance", old_variance, l));
  }
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape()));
  float* outputs[5] = {};
  for (int i = 1; i < 5; ++i) {
    TENON_ASSIGN_OR_RETURN(Tensor * t, ctx.AllocateOutput(i, Shape{l.channels}));
    outputs[i] = t->data<float>();
    std::fill_n(outputs[i], l.channels, 0.0f);
  }
  if (ctx.num_outputs() == 6) ctx.set_output(5, Tensor::Scalar<float>(0));
  float *const batch_mean = outputs[1], *const batch_variance = outputs[2];
  if (l.count() == 0) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::fill_n(batch_mean, l.channels, nan);
    std::fill_n(batch_variance, l.channels, nan);
    return OkStatus();
  }
  float *const mean = outputs[3], *const variance = outputs[4];
  CountedVector<float> factors(l.channels);
  Dispatch(x.dtype(), BatchNormTypes(), [&]<typename T>(T) {
    const T* const from = x.data<T>();
    const double count = static_cast<double>(l.count());
    if (training) {
      l.Sum({mean}, count, [&](int64_t i, int64_t) { return static_cast<float>(from[i]); });
      l.Sum({variance}, count, [&](int64_t i, int64_t c) {
        const float d = static_cast<float>(from[i]) - mean[c];
        return d * d;
      });
    } else {
      std::copy_n(old_mean.data<float>(), l.channels, mean);
      std::copy_n(old_variance.data<float>(), l.channels, variance);
    }
    for (int64_t c = 0; c < l.channels; ++c) {
      factors[c] = scale.data<float>()[c] / std::sqrt(variance[c] + epsilon);
    }
    const float* const add = offset.data<float>();
    l.Map(y->data<T>(), [&](int64_t i, int64_t c) {
      return (static_cast<float>(from[i]) - mean[c]) * factors[c] + add[c];
    });
  });
  // The moving averages get the unbiased variance.
  const float n = static_cast<float>(l.count());
  const float unbiased = training ? n / std::max(1.0f, n - 1) : 1;
  for (int64_t c = 0; c < l.channels; ++c) {
    batch_mean[c] = mean[c];
    batch_variance[c] = variance[c] * unbiased;
    if (!training || factor == 1) continue;
    batch_mean[c] = (1 - factor) * old_mean.data<float>()[c] + factor * batch_mean[c];
    batch_variance[c] = (1 - factor) * old_variance.data<float>()[c] + factor * batch_variance[c];
  }
  return OkStatus();
}

Status BatchNormGradKernel(KernelContext& ctx, float epsilon, const std::string& data_format,
                           bool training) {
  const Tensor &dy = ctx.input(0), &x = ctx.input(1), &scale = ctx.input(2);
  const Tensor &means = ctx.input(3), &variances = ctx.input(4);
  TENON_ASSIGN_OR_RETURN(const ChannelLayout l, LayoutOf(x, data_format));
  if (!(dy.shape() == x.shape())) {
    return InvalidArgument("x and y_backprop must have the same shape, found ", x.shape(), " and ",
                           dy.shape());
  }
  TENON_RETURN_IF_ERROR(CheckPerChannel("scale", scale, l));
  TENON_RETURN_IF_ERROR(CheckPerChannel("reserve_space_1", means, l));
  TENON_RETURN_IF_ERROR(CheckPerChannel("reserve_space_2", variances, l));
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, x.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * dscales, ctx.AllocateOutput(1, scale.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * doffsets, ctx.AllocateOutput(2, scale.shape()));
  for (const int i : {3, 4}) TENON_RETURN_IF_ERROR(ctx.AllocateOutput(i, Shape{0}).status());
  const float* const mean = means.data<float>();
  float *const dscale = dscales->data<float>(), *const doffset = doffsets->data<float>();
  Dispatch(x.dtype(), BatchNormTypes(), [&]<typename T>(T) {
    const T *const from = x.data<T>(), *const grad = dy.data<T>();
    const auto centred = [&](int64_t i, int64_t c) {
      return static_cast<float>(from[i]) - mean[c];
    };
    l.Sum(
        {doffset, dscale}, 1, [&](int64_t i, int64_t) { return static_cast<float>(grad[i]); },
        [&](int64_t i, int64_t c) { return static_cast<float>(grad[i]) * centred(i, c); });
    // dx = factor * (dy - by_mean - centred * by_variance)
    CountedVector<float> factor(l.channels), by_mean(l.channels), by_variance(l.channels);
    for (int64_t c = 0; c < l.channels; ++c) {
      const float inverse = 1 / std::sqrt(variances.data<float>()[c] + epsilon);
      factor[c] = scale.data<float>()[c] * inverse;
      if (training) {
        const float n = static_cast<float>(l.count());
        by_mean[c] = doffset[c] / n;
        by_variance[c] = dscale[c] / n * inverse * inverse;
      }
      dscale[c] *= inverse;
    }
    l.Map(dx->data<T>(), [&](int64_t i, int64_t c) {
      return factor[c] *
             (static_cast<float>(grad[i]) - by_mean[c] - centred(i, c) * by_variance[c]);
    });
  });
  return OkStatus();
}

// --- Shapes ---

/// x merged with `other`, and the channels with those of inputs [first, last].
Status NormShape(ShapeContext& c, int x_input, int first, int last, PartialShape* channels) {
  PartialShape x = c.input(x_input);
  if (!x.rank_known()) {
    *channels = PartialShape{PartialShape::kUnknownDim};
  } else if (x.rank() != 4 && x.rank() != 5) {
    return InvalidArgument("input must be 4 or 5-dimensional: ", x);
  } else {
    const bool second = ChannelsFirst(c.attrs().GetOr<std::string>("data_format", "NHWC"));
    *channels = PartialShape{x.dim(second ? 1 : x.rank() - 1)};
  }
  for (int i = first; i <= last; ++i) {
    TENON_ASSIGN_OR_RETURN(*channels, channels->MergeWith(c.input(i)));
  }
  c.set_output(0, x);
  return OkStatus();
}

Status BatchNormShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const bool training, c.Attr<bool>("is_training"));
  PartialShape channels;
  TENON_RETURN_IF_ERROR(NormShape(c, 0, 1, training ? 2 : 4, &channels));
  for (int i = 1; i < 5; ++i) c.set_output(i, channels);
  if (c.num_outputs() == 6) c.set_output(5, PartialShape{});
  return OkStatus();
}

Status BatchNormGradShape(ShapeContext& c) {
  PartialShape channels;
  TENON_RETURN_IF_ERROR(NormShape(c, 1, 2, 4, &channels));
  TENON_ASSIGN_OR_RETURN(const PartialShape dx, c.input(0).MergeWith(c.input(1)));
  c.set_output(0, dx);
  for (int i = 1; i < 5; ++i) c.set_output(i, i < 3 ? channels : PartialShape{0});
  return OkStatus();
}

// --- Gradients ---

void GradOfBatchNorm(GradContext& g, const std::string& grad_op) {
  if (!g.dy(0).exists()) return;
  const bool training = g.Attr<bool>("is_training");
  NodeBuilder builder(grad_op);
  builder.Input(g.dy(0)).Input(g.in(0)).Input(g.in(1));
  builder.Input(training ? g.out(3) : g.in(3)).Input(training ? g.out(4) : g.in(4));
  if (g.node().num_outputs() == 6) builder.Input(g.out(5));
  for (const char* const name : {"epsilon", "data_format", "is_training"}) {
    builder.Attr(name, *g.node().attrs().Find(name));
  }
  const std::vector<Output> gradients = builder.Outputs();
  for (int i = 0; i < 3; ++i) g.dx(i) = gradients[i];
}

/// The gradients of the gradients: those of what BatchNormGradKernel computes, in simple ops.
void GradOfBatchNormGrad(GradContext& g) {
  std::vector<Output> copies;
  for (int i = 0; i < 3; ++i) copies.push_back(StopGradient(g.in(i)));
  const Output dy = Cast(copies[0], DType::kFloat), x = Cast(copies[1], DType::kFloat);
  const auto format = g.Attr<std::string>("data_format", "NHWC");
  const bool first = ChannelsFirst(format);
  const int rank = x.shape().rank_known() ? x.shape().rank() : static_cast<int>(format.size());
  std::vector<int32_t> axes, along(rank, 1);
  for (int i = 0; i < rank; ++i) {
    if (i != (first ? 1 : rank - 1)) axes.push_back(i);
  }
  along[first ? 1 : rank - 1] = -1;
  const auto spread = [&](const Output& per_channel) { return Reshape(per_channel, Const(along)); };
  const auto mean_of = [&](const Output& t) { return Mean(t, Const(axes), {.keep_dims = true}); };
  const bool training = g.Attr<bool>("is_training");
  const Output centred = x - (training ? mean_of(x) : spread(g.in(3)));
  const Output variance = training ? mean_of(Square(centred)) : spread(g.in(4));
  const Output inverse = Rsqrt(variance + g.Attr<float>("epsilon"));
  Output dx = dy;
  if (training) dx = dy - mean_of(dy) - centred * Square(inverse) * mean_of(dy * centred);
  dx = Cast(spread(copies[2]) * inverse * dx, g.in(1).dtype());
  const std::vector<Output> all = {dx, Sum(dy * centred * inverse, Const(axes)),
                                   Sum(dy, Const(axes))};
  std::vector<Output> ys;
  GradientsOptions options = {.allow_unconnected = true};
  for (int i = 0; i < 3; ++i) {
    if (!g.dy(i).exists()) continue;
    ys.push_back(all[i]);
    options.grad_ys.push_back(g.dy(i));
  }
  const std::vector<Output> gradients = Gradients(ys, copies, options);
  for (int i = 0; i < 3; ++i) g.dx(i) = gradients[i];
}

}  // namespace

void RegisterBatchNorm(OpRegistry& ops) {
  const DTypeVector floats = DTypesOf(BatchNormTypes());
  for (const std::string version : {"", "V2", "V3"}) {
    const std::string name = "FusedBatchNorm" + version, grad = "FusedBatchNormGrad" + version;
    KernelOptions options;
    options.types = {{"T", version.empty() ? DTypeVector{DType::kFloat} : floats}};
    if (!version.empty()) options.types.push_back({"U", {DType::kFloat}});
    options.attrs = {"epsilon", "exponential_avg_factor", "data_format", "is_training"};
    const Shape x = {2, 2, 1, 3}, c = {3};
    ops.Add(name, BatchNormShape, BatchNormKernel, options)
        .InDomain(0.5, 2)
        .Grad([grad](GradContext& g) { GradOfBatchNorm(g, grad); })
        .Example({x, c, c, Shape{0}, Shape{0}})
        .Example({x, c, c, c, c}, {{"is_training", false}})
        .Example({Shape{2, 3, 2, 1}, c, c, c, c},
                 {{"exponential_avg_factor", 0.25f}, {"data_format", "NCHW"}});
    options.attrs = {"epsilon", "data_format", "is_training"};
    std::vector<ExampleInput> inputs = {x, x, c, c, c};
    if (version == "V3") inputs.push_back(Shape{});
    ops.Add(grad, BatchNormGradShape, BatchNormGradKernel, options)
        .InDomain(0.5, 2)
        .Grad(GradOfBatchNormGrad)
        .Example(inputs)
        .Example(inputs, {{"is_training", false}});
  }
}

}  // namespace tenon
