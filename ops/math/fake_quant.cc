// SPDX-License-Identifier: Apache-2.0
//
// Values rounded to what a quantised type could hold. The range of a channel is moved a little, so
// that 0 is one of its values.
#include <algorithm>
#include <cmath>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/math/math_ops.h"

namespace tenon {
namespace {

/// A range as it is used.
struct Nudged {
  Nudged(float wanted_min, float wanted_max, int64_t low, int64_t high)
      : is_zero(wanted_min == 0 && wanted_max == 0) {
    const float first = static_cast<float>(low), last = static_cast<float>(high);
    scale = (wanted_max - wanted_min) / (last - first);
    inverse = (last - first) / (wanted_max - wanted_min);
    const float exact = first - wanted_min / scale;
    const float zero_point = exact >= first ? std::round(std::min(exact, last)) : first;
    min = (first - zero_point) * scale;
    max = (last - zero_point) * scale;
    zero = std::floor(-min * inverse + 0.5f);
  }

  bool is_zero;  // such a range gives 0, and passes gradients on
  float scale, inverse, min, max, zero;
};

/// Attributes that all of these ops have.
struct Quantum : KernelState {
  explicit Quantum(KernelConstruction& c) : low(c.Attr<bool>("narrow_range") ? 1 : 0) {
    const int64_t bits = c.Attr<int64_t>("num_bits");
    if (bits < 2 || bits > 16) {
      c.Fail(InvalidArgument("num_bits must be between 2 and 16, inclusive, found ", bits));
    }
    high = (int64_t{1} << std::clamp<int64_t>(bits, 2, 16)) - 1;
  }
  int64_t low, high;
};

/// Where the range comes from: attributes, scalars, or vectors with an element for each channel.
enum class RangeFrom { kAttrs, kScalars, kChannels };

struct RangeAttrs : KernelState {
  explicit RangeAttrs(KernelConstruction& c)
      : min(c.attrs().GetOr("min", 0.0f)), max(c.attrs().GetOr("max", 0.0f)) {}
  const float min, max;
};

/// The ranges of the channels of `x`; inputs `first` and `first` + 1 give them.
template <RangeFrom kRange>
StatusOr<std::vector<Nudged>> RangesOf(const KernelContext& ctx, const Tensor& x, int first,
                                       const Quantum& q, const RangeAttrs& attrs) {
  std::vector<Nudged> ranges;
  if constexpr (kRange == RangeFrom::kAttrs) {
    if (!(attrs.min < attrs.max)) {
      return InvalidArgument("min has to be smaller than max, was: ", attrs.min, " >= ", attrs.max);
    }
    ranges.emplace_back(attrs.min, attrs.max, q.low, q.high);
  } else {
    if (kRange == RangeFrom::kChannels && x.rank() < 1) {
      return InvalidArgument("inputs must be at least a vector, found a scalar");
    }
    const Shape wanted = kRange == RangeFrom::kChannels ? Shape{x.dim(x.rank() - 1)} : Shape{};
    const Tensor &min = ctx.input(first), &max = ctx.input(first + 1);
    if (min.shape() != wanted || max.shape() != wanted) {
      return InvalidArgument("min and max must have shape ", wanted, ", found ", min.shape(),
                             " and ", max.shape());
    }
    for (int64_t i = 0; i < min.num_elements(); ++i) {
      ranges.emplace_back(min.data<float>()[i], max.data<float>()[i], q.low, q.high);
    }
  }
  return ranges;
}

template <RangeFrom kRange>
Status FakeQuantKernel(KernelContext& ctx, const Quantum& q, const RangeAttrs& attrs) {
  const Tensor& x = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const auto ranges, RangesOf<kRange>(ctx, x, 1, q, attrs));
  const float* in = x.data<float>();
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0, x.shape()));
  if (y->num_elements() == 0) return OkStatus();
  float* const out = y->data<float>();
  const int64_t depth = static_cast<int64_t>(ranges.size());
  const auto apply = [](float value, const Nudged& r) {
    if (r.is_zero) return 0.0f;
    const float shifted = std::max(std::min(value, r.max), r.min) - r.min;
    // Products and quotients differ in the last bit, and TensorFlow has both.
    const float steps = kRange == RangeFrom::kScalars ? shifted / r.scale : shifted * r.inverse;
    return std::floor(steps - r.zero + 0.5f) * r.scale;
  };
  ParallelFor(x.num_elements() / depth, 2.0 * static_cast<double>(depth),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  for (int64_t c = 0; c < depth; ++c) {
                    out[row * depth + c] = apply(in[row * depth + c], ranges[c]);
                  }
                }
              });
  return OkStatus();
}

/// Gradients go to the input inside the range, and to the end of the range that is nearer outside.
template <RangeFrom kRange>
Status FakeQuantGradKernel(KernelContext& ctx, const Quantum& q, const RangeAttrs& attrs) {
  const Tensor dy = ctx.input(0), x = ctx.input(1);
  if (dy.shape() != x.shape()) {
    return InvalidArgument("gradient and input must be the same size, found shapes ", dy.shape(),
                           " and ", x.shape());
  }
  TENON_ASSIGN_OR_RETURN(const auto ranges, RangesOf<kRange>(ctx, x, 2, q, attrs));
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, x.shape()));
  const int64_t depth = static_cast<int64_t>(ranges.size());
  CountedVector<double> below(depth, 0), above(depth, 0);
  for (int64_t row = 0, i = 0; row < x.num_elements() / std::max<int64_t>(depth, 1); ++row) {
    if (row % kStepsBetweenLooks == 0 && Interrupted()) return OkStatus();
    for (int64_t c = 0; c < depth; ++c, ++i) {
      const float value = x.data<float>()[i], gradient = dy.data<float>()[i];
      const Nudged& r = ranges[c];
      const bool inside = r.is_zero || (value >= r.min && value <= r.max);
      dx->data<float>()[i] = inside ? gradient : gradient * 0.0f;
      if (!inside && value < r.min) below[c] += gradient;
      if (!inside && value > r.max) above[c] += gradient;
    }
  }
  if constexpr (kRange != RangeFrom::kAttrs) {
    for (const int k : {1, 2}) {
      TENON_ASSIGN_OR_RETURN(Tensor * sums, ctx.AllocateOutput(k, ctx.input(2).shape()));
      const auto& from = k == 1 ? below : above;
      std::copy(from.begin(), from.end(), sums->data<float>());
    }
  }
  return OkStatus();
}

Status GradShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape merged, c.input(0).MergeWith(c.input(1)));
  c.set_output(0, merged);
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, c.input(i + 1));
  return OkStatus();
}

/// What one gradient op takes over from the node whose gradient it is.
template <typename Options>
Options Same(const GradContext& g) {
  return {.num_bits = g.Attr<int64_t>("num_bits"), .narrow_range = g.Attr<bool>("narrow_range")};
}

void SetGradients(GradContext& g, const auto& gradients) {
  g.dx(0) = gradients.backprops_wrt_input;
  g.dx(1) = gradients.backprop_wrt_min;
  g.dx(2) = gradients.backprop_wrt_max;
}

}  // namespace

void RegisterFakeQuant(OpRegistry& ops) {
  ops.Add("FakeQuantWithMinMaxArgs", UnchangedShape, FakeQuantKernel<RangeFrom::kAttrs>)
      .Grad([](GradContext& g) {
        auto options = Same<FakeQuantWithMinMaxArgsGradientOptions>(g);
        options.min = g.Attr<float>("min");
        options.max = g.Attr<float>("max");
        g.dx(0) = FakeQuantWithMinMaxArgsGradient(g.dy(0), g.in(0), options);
      })
      .Example({Shape{2, 3}});
  ops.Add("FakeQuantWithMinMaxArgsGradient", GradShape, FakeQuantGradKernel<RangeFrom::kAttrs>)
      .Example({Shape{2, 3}, Shape{2, 3}});
  const Tensor min = Tensor::Scalar(-1.0f), max = Tensor::Scalar(1.5f);
  ops.Add("FakeQuantWithMinMaxVars", UnchangedShape, FakeQuantKernel<RangeFrom::kScalars>)
      .Grad([](GradContext& g) {
        SetGradients(
            g, FakeQuantWithMinMaxVarsGradient(g.dy(0), g.in(0), g.in(1), g.in(2),
                                               Same<FakeQuantWithMinMaxVarsGradientOptions>(g)));
      })
      .Example({Shape{2, 3}, min, max});
  ops.Add("FakeQuantWithMinMaxVarsGradient", GradShape, FakeQuantGradKernel<RangeFrom::kScalars>)
      .Example({Shape{2, 3}, Shape{2, 3}, min, max});
  const Tensor mins = Tensor::Vector<float>({-1, 0, -2}), maxs = Tensor::Vector<float>({1, 2, 0});
  ops.Add("FakeQuantWithMinMaxVarsPerChannel", UnchangedShape,
          FakeQuantKernel<RangeFrom::kChannels>)
      .Grad([](GradContext& g) {
        SetGradients(g, FakeQuantWithMinMaxVarsPerChannelGradient(
                            g.dy(0), g.in(0), g.in(1), g.in(2),
                            Same<FakeQuantWithMinMaxVarsPerChannelGradientOptions>(g)));
      })
      .Example({Shape{2, 3}, mins, maxs});
  ops.Add("FakeQuantWithMinMaxVarsPerChannelGradient", GradShape,
          FakeQuantGradKernel<RangeFrom::kChannels>)
      .Example({Shape{2, 3}, Shape{2, 3}, mins, maxs});
}

}  // namespace tenon
