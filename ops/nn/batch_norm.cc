// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/batch_norm.h"

#include <array>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/maths.h"
#include "ops/nn/channel_blocks.h"
#include "ops/nn/nn_ops.h"

namespace tenon {
namespace {

using BatchNormTypes = TypeList<float, Half, BFloat16>;

/// Guess of what an element costs.
constexpr double kElementNs = 0.2;
/// Elements of a channel that are added up in float; the sums of these in double.
constexpr int64_t kFloatSum = 512;
/// Elements that are still in a cache when they are read again, and the rows that are read at once
/// even where they have more: otherwise there were as many sums as elements.
constexpr int64_t kCached = 8192, kFewestRows = 32;
/// Channels whose sums fit in registers.
constexpr int64_t kChannels = 32;

/// An image that is read in blocks of rows which stay in a cache.
struct ChannelLayout : ImageChannels {
  using ImageChannels::count;
  int64_t row() const { return channels * inner; }
  int64_t block_rows() const {
    return std::min(std::max(kCached / std::max<int64_t>(1, row()), kFewestRows),
                    std::max<int64_t>(1, kFloatSum / std::max<int64_t>(1, inner)));
  }
  int64_t num_blocks() const { return (outer + block_rows() - 1) / block_rows(); }
  /// How many elements of a channel lie in block b.
  int64_t count(int64_t b) const {
    return (std::min(outer, (b + 1) * block_rows()) - b * block_rows()) * inner;
  }

  /// fn(b) for each block, on several threads.
  void ForEachBlock(absl::FunctionRef<void(int64_t b)> fn) const {
    const double cost = kElementNs * static_cast<double>(std::min(block_rows(), outer) * row());
    ParallelFor(num_blocks(), cost, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) fn(b);
    });
  }

  /// In block b: to[i] = fn(i, n[c]...) for each number n of i's channel c.
  template <typename T, typename Fn, typename... N>
  void Map(int64_t b, T* to, Fn fn, const N*... n) const {
    const int64_t begin = b * block_rows(), end = std::min(outer, begin + block_rows());
    if (inner != 1) {
      for (int64_t o = begin; o < end && !Interrupted(); ++o) {
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t first = o * row() + c * inner, last = first + inner;
          [=](auto... of_channel) {
            TENON_SIMD
            for (int64_t i = first; i < last; ++i) to[i] = static_cast<T>(fn(i, of_channel...));
          }(n[c]...);
        }
      }
      return;
    }
    InBlocks<kChannels>(channels, [&](int64_t first, auto size) {
      // Copies, since what is written might be the numbers for all that the compiler knows.
      [&](const auto&... numbers) {
        for (int64_t o = begin; o < end; ++o) {
          const int64_t at = o * channels + first;
          TENON_SIMD
          for (int64_t c = 0; c < size; ++c) {
            to[at + c] = static_cast<T>(fn(at + c, numbers[c]...));
          }
        }
      }(Copies<N>(n + first, size)...);
    });
  }

  /// Adds up block b, for each channel c and each of the functions: sums[c] = the sum of fn(i,
  /// n[c]); the sums of the next function follow.
  template <typename... Fn>
  void Sum(int64_t b, const float* n, float* sums, Fn... fn) const {
    const int64_t begin = b * block_rows(), end = std::min(outer, begin + block_rows());
    if (inner != 1) {
      std::fill_n(sums, channels * int64_t{sizeof...(Fn)}, 0.0f);
      for (int64_t o = begin; o < end && !Interrupted(); ++o) {
        for (int64_t c = 0; c < channels; ++c) {
          float* sum = sums + c;
          ((*sum += SumOfRun(o * row() + c * inner, n[c], fn), sum += channels), ...);
        }
      }
      return;
    }
    InBlocks<kChannels>(channels, [&](int64_t first, auto size) {
      const Copies<float> numbers(n + first, size);
      float parts[sizeof...(Fn)][kChannels] = {};
      for (int64_t o = begin; o < end; ++o) {
        const int64_t at = o * channels + first;
        TENON_SIMD
        for (int64_t c = 0; c < size; ++c) {
          size_t k = 0;
          ((parts[k++][c] += fn(at + c, numbers[c])), ...);
        }
      }
      for (size_t k = 0; k < sizeof...(Fn); ++k) {
        std::copy_n(parts[k], size, sums + static_cast<int64_t>(k) * channels + first);
      }
    });
  }

 private:
  template <typename N>
  struct Copies {
    Copies(const N* from, int64_t size) { std::copy_n(from, size, numbers); }
    N operator[](int64_t c) const { return numbers[c]; }
    N numbers[kChannels];
  };

  template <typename Fn>
  float SumOfRun(int64_t first, float n, Fn fn) const {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = first; i < first + inner; ++i) sum += fn(i, n);
    return sum;
  }
};

bool ChannelsFirst(std::string_view data_format) { return data_format[1] == 'C'; }

StatusOr<ImageChannels> ChannelsOf(const Tensor& x, std::string_view data_format) {
  if (x.rank() != 4 && x.rank() != 5) {
    return InvalidArgument("input must be 4 or 5-dimensional: ", x.shape());
  }
  ImageChannels l;
  const int axis = ChannelsFirst(data_format) ? 1 : x.rank() - 1;
  l.channels = x.dim(axis);
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) (i < axis ? l.outer : l.inner) *= x.dim(i);
  }
  return l;
}

Status CheckPerChannel(std::string_view what, const Tensor& t, const ImageChannels& l) {
  if (t.rank() == 1 && t.dim(0) == l.channels) return OkStatus();
  return InvalidArgument(what, " must have an element for each of the ", l.channels,
                         " channels of x, found shape ", t.shape());
}

/// The mean and the variance of each channel: those of the blocks, in one reading of memory, and
/// then of all (Chan, Golub, LeVeque: "Algorithms for computing the sample variance", 1983).
template <typename T>
void Moments(const ChannelLayout& l, const T* x, float* mean, float* variance) {
  const int64_t blocks = l.num_blocks(), n = l.channels;
  CountedVector<float> means(blocks * n), squares(blocks * n);
  l.ForEachBlock([&](int64_t b) {
    float* const m = means.data() + b * n;
    l.Sum(b, m, m, [x](int64_t i, float) { return static_cast<float>(x[i]); });
    const float count = static_cast<float>(l.count(b));
    for (int64_t c = 0; c < n; ++c) m[c] /= count;
    l.Sum(b, m, squares.data() + b * n, [x](int64_t i, float of_channel) {
      const float d = static_cast<float>(x[i]) - of_channel;
      return d * d;
    });
  });
  const double count = static_cast<double>(l.count());
  CountedVector<double> sums(n);
  for (int64_t b = 0; b < blocks; ++b) {
    const double in_block = static_cast<double>(l.count(b));
    for (int64_t c = 0; c < n; ++c) sums[c] += in_block * means[b * n + c];
  }
  for (int64_t c = 0; c < n; ++c) mean[c] = static_cast<float>(sums[c] /= count);
  CountedVector<double> deviations(n);
  for (int64_t b = 0; b < blocks; ++b) {
    const double in_block = static_cast<double>(l.count(b));
    for (int64_t c = 0; c < n; ++c) {
      const double d = means[b * n + c] - sums[c];
      deviations[c] += squares[b * n + c] + in_block * d * d;
    }
  }
  for (int64_t c = 0; c < n; ++c) variance[c] = static_cast<float>(deviations[c] / count);
}

Status BatchNormKernel(KernelContext& ctx, const Tensor& x, const Tensor& scale,
                       const Tensor& offset, const Tensor& old_mean, const Tensor& old_variance,
                       float epsilon, float factor, const std::string& data_format, bool training) {
  TENON_ASSIGN_OR_RETURN(const ImageChannels image,
                         CheckBatchNorm(ctx, data_format, training, factor));
  const ChannelLayout l{image};
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape()));
  float* outputs[5] = {};
  for (int i = 1; i < 5; ++i) {
    TENON_ASSIGN_OR_RETURN(Tensor * t, ctx.AllocateOutput(i, Shape{l.channels}));
    outputs[i] = t->data<float>();
    std::fill_n(outputs[i], l.channels, 0.0f);
  }
  if (ctx.num_outputs() == 6) ctx.set_output(5, Tensor::Scalar<float>(0));
  float *const batch_mean = outputs[1], *const batch_variance = outputs[2];
  if (x.num_elements() == 0) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::fill_n(batch_mean, l.channels, nan);
    std::fill_n(batch_variance, l.channels, nan);
    return OkStatus();
  }
  float *const mean = outputs[3], *const variance = outputs[4];
  CountedVector<float> factors(l.channels);
  Dispatch(x.dtype(), BatchNormTypes(), [&]<typename T>(T) {
    const T* const from = x.data<T>();
    if (training) {
      Moments(l, from, mean, variance);
    } else {
      std::copy_n(old_mean.data<float>(), l.channels, mean);
      std::copy_n(old_variance.data<float>(), l.channels, variance);
    }
    for (int64_t c = 0; c < l.channels; ++c) {
      factors[c] = scale.data<float>()[c] / std::sqrt(variance[c] + epsilon);
    }
    l.ForEachBlock([&](int64_t b) {
      const auto normalized = [from](int64_t i, float m, float factor, float add) {
        return (static_cast<float>(from[i]) - m) * factor + add;
      };
      l.Map(b, y->data<T>(), normalized, mean, factors.data(), offset.data<float>());
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

Status BatchNormGradKernel(KernelContext& ctx, const Tensor& dy, const Tensor& x,
                           const Tensor& scale, const Tensor& means, const Tensor& variances,
                           float epsilon, const std::string& data_format, bool training) {
  TENON_ASSIGN_OR_RETURN(const ImageChannels image, CheckBatchNormGrad(ctx, data_format));
  const ChannelLayout l{image};
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, x.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * dscales, ctx.AllocateOutput(1, scale.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * doffsets, ctx.AllocateOutput(2, scale.shape()));
  for (const int i : {3, 4}) TENON_RETURN_IF_ERROR(ctx.AllocateOutput(i, Shape{0}).status());
  if (x.num_elements() == 0) {
    ZeroElements(dscales);
    ZeroElements(doffsets);
    return OkStatus();
  }
  const float* const mean = means.data<float>();
  float *const dscale = dscales->data<float>(), *const doffset = doffsets->data<float>();
  Dispatch(x.dtype(), BatchNormTypes(), [&]<typename T>(T) {
    const T *const from = x.data<T>(), *const grad = dy.data<T>();
    const int64_t blocks = l.num_blocks(), n = l.channels;
    CountedVector<float> parts(blocks * n * 2);  // of doffset, and of dscale
    l.ForEachBlock([&](int64_t b) {
      l.Sum(
          b, mean, parts.data() + b * n * 2,
          [grad](int64_t i, float) { return static_cast<float>(grad[i]); },
          [grad, from](int64_t i, float m) {
            return static_cast<float>(grad[i]) * (static_cast<float>(from[i]) - m);
          });
    });
    CountedVector<double> sums(n * 2);
    for (int64_t b = 0; b < blocks; ++b) {
      for (int64_t c = 0; c < n * 2; ++c) sums[c] += parts[b * n * 2 + c];
    }
    // dx = factor * (dy - by_mean - (x - mean) * by_variance)
    CountedVector<float> factor(n), by_mean(n), by_variance(n);
    for (int64_t c = 0; c < n; ++c) {
      const float inverse = 1 / std::sqrt(variances.data<float>()[c] + epsilon);
      factor[c] = scale.data<float>()[c] * inverse;
      doffset[c] = static_cast<float>(sums[c]);
      dscale[c] = static_cast<float>(sums[n + c]);
      if (training) {
        const float count = static_cast<float>(l.count());
        by_mean[c] = doffset[c] / count;
        by_variance[c] = dscale[c] / count * inverse * inverse;
      }
      dscale[c] *= inverse;
    }
    l.ForEachBlock([&](int64_t b) {
      l.Map(
          b, dx->data<T>(),
          [grad, from](int64_t i, float m, float scaled, float by_m, float by_v) {
            const float centred = static_cast<float>(from[i]) - m;
            return scaled * (static_cast<float>(grad[i]) - by_m - centred * by_v);
          },
          mean, factor.data(), by_mean.data(), by_variance.data());
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

StatusOr<ImageChannels> CheckBatchNorm(const KernelContext& ctx, std::string_view data_format,
                                       bool training, float exponential_avg_factor) {
  TENON_ASSIGN_OR_RETURN(const ImageChannels l, ChannelsOf(ctx.input(0), data_format));
  TENON_RETURN_IF_ERROR(CheckPerChannel("scale", ctx.input(1), l));
  TENON_RETURN_IF_ERROR(CheckPerChannel("offset", ctx.input(2), l));
  if (training && exponential_avg_factor == 1) return l;
  TENON_RETURN_IF_ERROR(CheckPerChannel("mean", ctx.input(3), l));
  TENON_RETURN_IF_ERROR(CheckPerChannel("variance", ctx.input(4), l));
  return l;
}

StatusOr<ImageChannels> CheckBatchNormGrad(const KernelContext& ctx, std::string_view data_format) {
  const Tensor &dy = ctx.input(0), &x = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const ImageChannels l, ChannelsOf(x, data_format));
  if (!(dy.shape() == x.shape())) {
    return InvalidArgument("x and y_backprop must have the same shape, found ", x.shape(), " and ",
                           dy.shape());
  }
  TENON_RETURN_IF_ERROR(CheckPerChannel("scale", ctx.input(2), l));
  TENON_RETURN_IF_ERROR(CheckPerChannel("reserve_space_1", ctx.input(3), l));
  TENON_RETURN_IF_ERROR(CheckPerChannel("reserve_space_2", ctx.input(4), l));
  return l;
}

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
