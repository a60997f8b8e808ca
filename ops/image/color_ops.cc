// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/composition.h"
#include "ops/math/math_ops.h"
#include "ops/maths.h"

namespace tenon {
namespace {

template <typename C>
struct Rgb {
  C r, g, b;
};
template <typename C>
struct Hsv {
  C hue, saturation, value;
};

/// Hue, saturation and value are in [0, 1] when the colors are.
template <typename C>
Hsv<C> HsvOf(const Rgb<C>& p) {
  const C value = std::max(p.r, std::max(p.g, p.b));
  const C range = value - std::min(p.r, std::min(p.g, p.b));
  const C norm = 1 / range * (C(1) / 6);
  C hue = p.r == value   ? norm * (p.g - p.b)
          : p.g == value ? norm * (p.b - p.r) + C(2) / 6
                         : norm * (p.r - p.g) + C(4) / 6;
  if (!(range > 0)) hue = 0;
  if (hue < 0) hue += 1;
  return {hue, value > 0 ? range / value : 0, value};
}

template <typename C>
Rgb<C> RgbOf(const Hsv<C>& p) {
  const C sixths = p.hue * 6;
  const auto mix = [&p](C part) {
    return (1 - p.saturation + p.saturation * std::clamp(part, C(0), C(1))) * p.value;
  };
  return {mix(std::abs(sixths - 3) - 1), mix(2 - std::abs(sixths - 2)),
          mix(2 - std::abs(sixths - 4))};
}

/// What pixels of three channels become by `fn(three elements)`, which gives three.
template <typename T, typename Fn>
Status MapPixels(KernelContext& ctx, Fn fn) {
  const Tensor& in = ctx.input(0);
  const T* const from = in.data<T>();
  const int64_t pixels = in.num_elements() / 3;
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0, in.shape()));
  T* const to = out->data<T>();
  using C = ComputeType<T>;
  ParallelFor(pixels, 8, [=](int64_t begin, int64_t end) {
    for (int64_t i = 3 * begin; i < 3 * end; i += 3) {
      const auto [x, y, z] =
          fn(static_cast<C>(from[i]), static_cast<C>(from[i + 1]), static_cast<C>(from[i + 2]));
      to[i] = static_cast<T>(x);
      to[i + 1] = static_cast<T>(y);
      to[i + 2] = static_cast<T>(z);
    }
  });
  return OkStatus();
}

template <bool kToHsv>
Status ColorSpaceKernel(KernelContext& ctx, const Tensor& in) {
  if (in.rank() < 1) return InvalidArgument("images must have channels, found shape []");
  if (in.dim(in.rank() - 1) != 3) {
    return FailedPrecondition("images must have 3 channels, found shape ", in.shape());
  }
  return DispatchStatus(in.dtype(), FloatTypes(), [&]<typename T>(T) {
    return MapPixels<T>(ctx, []<typename C>(C x, C y, C z) {
      if constexpr (kToHsv) return HsvOf<C>({x, y, z});
      if constexpr (!kToHsv) return RgbOf<C>({x, y, z});
    });
  });
}

/// The gradient by the colors x = [..., 3]. With M and m the largest and smallest and C = M - m,
/// the value is M, the saturation 1 - m / M and the hue (n - p) / 6C and a constant, n and p being
/// the next and the second next color after the largest.
void RgbToHsvGrad(GradContext& g) {
  const Output x = g.in(0);
  const auto one_hot = [&x](const Output& index) {
    return OneHot(index, 3, Cast(1, x.dtype()), Cast(0, x.dtype()));
  };
  // The first of equal colors is the largest and the last the smallest.
  const Output top = one_hot(ArgMax(x, -1));
  const Output low = ReverseV2(one_hot(ArgMin(ReverseV2(x, {-1}), -1)), {-1});
  const Output next = Roll(top, {1}, {-1}), after = Roll(top, {2}, {-1});
  const auto pick = [](const Output& values, const Output& which) {
    return Sum(values * which, {-1}, {.keep_dims = true});
  };
  const auto part = [&](int channel) {
    return pick(g.dy(0), OneHot(channel, 3, Cast(1, x.dtype()), Cast(0, x.dtype())));
  };
  const Output largest = pick(x, top), smallest = pick(x, low), range = largest - smallest;
  const Output hue = DivNoNan(part(0), range * 6);
  const Output slope = DivNoNan(hue * (pick(x, next) - pick(x, after)), range);
  const Output saturation =
      DivNoNan(part(1), largest) * Cast(Greater(largest, ZerosLike(largest)), x.dtype());
  g.dx(0) = hue * (next - after) - slope * (top - low) + part(2) * top +
            saturation * (DivNoNan(smallest, largest) * top - low);
}

/// InvalidArgument unless input 0 is [..., height, width, channels], of 3 channels unless `any`,
/// and the other inputs are scalars.
Status CheckAdjustment(const KernelContext& ctx, bool any,
                       absl::Span<const std::string_view> names) {
  const Tensor& in = ctx.input(0);
  if (in.rank() < 3) {
    return InvalidArgument("input must be at least 3-D, got shape ", in.shape());
  }
  if (!any && in.dim(in.rank() - 1) != 3) {
    return InvalidArgument("input must have 3 channels but instead has ", in.dim(in.rank() - 1),
                           " channels, in shape ", in.shape());
  }
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    if (ctx.input(i).rank() == 0) continue;
    return InvalidArgument(names[i - 1], " must be scalar: found shape ", ctx.input(i).shape());
  }
  return OkStatus();
}

Status AdjustHueKernel(KernelContext& ctx) {
  TENON_RETURN_IF_ERROR(CheckAdjustment(ctx, false, {"delta"}));
  const float delta = 6 * ctx.input(1).scalar<float>();
  return MapPixels<float>(ctx, [delta](float r, float g, float b) -> Rgb<float> {
    const float high = std::max(r, std::max(g, b)), low = std::min(r, std::min(g, b));
    const float range = high - low;
    // In sixths of the circle, where each color begins to fall or rise.
    float hue = 0;
    if (range != 0) {
      hue = r == high ? (g - b) / range : g == high ? 2 + (b - r) / range : 4 + (r - g) / range;
    }
    hue += delta;
    hue -= 6 * std::floor(hue / 6);
    const auto at = [=](float shift) {
      const float sixths = hue + shift;
      // The function fmod would take longer than all the rest.
      const float within = sixths < 6 ? sixths : sixths < 12 ? sixths - 6 : std::fmod(sixths, 6.0f);
      const float place = std::abs(within - 3);
      return low + range * std::clamp(place - 1, 0.0f, 1.0f);
    };
    return {at(0), at(4), at(2)};
  });
}

Status AdjustSaturationKernel(KernelContext& ctx) {
  TENON_RETURN_IF_ERROR(CheckAdjustment(ctx, false, {"scale"}));
  const float scale = ctx.input(1).scalar<float>();
  return MapPixels<float>(ctx, [scale](float r, float g, float b) {
    Hsv<float> p = HsvOf<float>({r, g, b});
    p.saturation = std::min(1.0f, std::max(0.0f, p.saturation * scale));
    return RgbOf(p);
  });
}

/// Moves each element away from the mean of its image's channel, `factor` times as far.
template <typename T>
void SpreadFromMean(const Tensor& in, float factor, float low, float high, Tensor* out) {
  const int64_t channels = in.dim(in.rank() - 1);
  const int64_t pixels = in.dim(in.rank() - 3) * in.dim(in.rank() - 2), size = pixels * channels;
  ParallelFor(in.num_elements() / size, 2 * static_cast<double>(size), [&](int64_t b, int64_t end) {
    CountedVector<double> sums(channels);
    CountedVector<float> means(channels);
    for (; b < end && !Interrupted(); ++b) {
      const T* const from = in.data<T>() + b * size;
      float* const to = out->data<float>() + b * size;
      std::fill(sums.begin(), sums.end(), 0);
      for (int64_t i = 0; i < size; i += channels) {
        for (int64_t c = 0; c < channels; ++c) sums[c] += static_cast<double>(from[i + c]);
      }
      for (int64_t c = 0; c < channels; ++c) {
        means[c] = static_cast<float>(sums[c] / static_cast<double>(pixels));
      }
      for (int64_t i = 0; i < size; i += channels) {
        for (int64_t c = 0; c < channels; ++c) {
          const float v = (static_cast<float>(from[i + c]) - means[c]) * factor + means[c];
          to[i + c] = std::max(std::min(v, high), low);
        }
      }
    }
  });
}

Status AdjustContrastKernel(KernelContext& ctx, const Tensor& in) {
  TENON_RETURN_IF_ERROR(CheckAdjustment(ctx, true, {"contrast_factor", "min_value", "max_value"}));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  if (in.num_elements() == 0) return OkStatus();
  using Types = TypeList<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t>;
  return DispatchStatus(in.dtype(), Types(), [&]<typename T>(T) {
    SpreadFromMean<T>(in, ctx.input(1).scalar<float>(), ctx.input(2).scalar<float>(),
                      ctx.input(3).scalar<float>(), out);
  });
}

Status AdjustContrastV2Kernel(KernelContext& ctx, const Tensor& in) {
  TENON_RETURN_IF_ERROR(CheckAdjustment(ctx, true, {"contrast_factor"}));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  if (in.num_elements() == 0) return OkStatus();
  const float all = std::numeric_limits<float>::infinity();
  SpreadFromMean<float>(in, ctx.input(1).scalar<float>(), -all, all, out);
  return OkStatus();
}

Status ColorSpaceShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape images, c.WithRankAtLeast(0, 1));
  if (!images.rank_known()) return OkStatus();
  const int last = images.rank() - 1;
  return c.Return(images.MergeWith(PartialShape::OfRank(last + 1).WithDim(last, 3)));
}

Status AdjustmentShape(ShapeContext& c) { return c.Return(c.WithRankAtLeast(0, 3)); }

}  // namespace

void RegisterColorOps(OpRegistry& ops) {
  const KernelOptions floats = {.types = {{"T", {DType::kFloat}}}};
  ops.Add("RGBToHSV", ColorSpaceShape, ColorSpaceKernel<true>)
      .Grad(RgbToHsvGrad)
      .InDomain(0.1, 1)
      .Example({Shape{2, 4, 3}});
  ops.Add("HSVToRGB", ColorSpaceShape, ColorSpaceKernel<false>)
      .InDomain(0, 1)
      .Example({Shape{2, 4, 3}});
  ops.Add("AdjustHue", AdjustmentShape, AdjustHueKernel, floats)
      .Example({Shape{2, 4, 3}, Tensor::Scalar(0.3f)}, {{"T", DType::kFloat}});
  ops.Add("AdjustSaturation", AdjustmentShape, AdjustSaturationKernel, floats)
      .Example({Shape{2, 4, 3}, Tensor::Scalar(1.5f)}, {{"T", DType::kFloat}});
  ops.Add("AdjustContrastv2", AdjustmentShape, AdjustContrastV2Kernel, floats)
      .Example({Shape{2, 2, 4, 2}, Tensor::Scalar(1.5f)}, {{"T", DType::kFloat}});
  ops.Add("AdjustContrast", AdjustmentShape, AdjustContrastKernel)
      .Example(
          {Shape{2, 2, 4, 2}, Tensor::Scalar(1.5f), Tensor::Scalar(-1.0f), Tensor::Scalar(2.0f)});
}

}  // namespace tenon
