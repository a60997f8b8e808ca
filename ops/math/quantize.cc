// SPDX-License-Identifier: Apache-2.0
//
// Floats as integers of the quantised types and back. The arithmetic is that of float, each step in
// a statement of its own, as what is joined may be rounded once only: the integers must be those
// that other programs have stored.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/math/channels.h"
#include "ops/maths.h"

namespace tenon {
namespace {

enum class Mode { kMinCombined, kMinFirst, kScaled };

/// What the nodes say.
struct Way : KernelState {
  explicit Way(KernelConstruction& c)
      : mode(ModeOf(c.Attr<std::string>("mode"))),
        narrow(c.Attr<bool>("narrow_range")),
        axis(c.Attr<int64_t>("axis")),
        half_to_even(c.attrs().GetOr("round_mode", std::string()) == "HALF_TO_EVEN"),
        least_range(c.attrs().GetOr("ensure_minimum_range", 0.0f)) {
    if (axis < -1) c.Fail(InvalidArgument("axis must be at least -1, found ", axis));
    if (half_to_even && mode != Mode::kScaled) {
      c.Fail(InvalidArgument("Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', found '",
                             c.Attr<std::string>("mode"), "'"));
    }
    if (c.op() == "Dequantize" && c.output_types()[0] != DType::kFloat &&
        mode != Mode::kMinCombined) {
      c.Fail(InvalidArgument("the mode of a bfloat16 must be 'MIN_COMBINED', found '",
                             c.Attr<std::string>("mode"), "'"));
    }
  }
  static Mode ModeOf(std::string_view name) {
    return name == "SCALED"      ? Mode::kScaled
           : name == "MIN_FIRST" ? Mode::kMinFirst
                                 : Mode::kMinCombined;
  }

  const Mode mode;
  const bool narrow;
  const int64_t axis;
  const bool half_to_even;
  const float least_range;
};

/// DispatchStatus with the integers that the elements of a quantised dtype are.
template <typename Fn>
Status DispatchQuantised(DType type, Fn fn) {
  switch (type) {
    case DType::kQInt8:
      return fn(int8_t());
    case DType::kQUInt8:
      return fn(uint8_t());
    case DType::kQInt16:
      return fn(int16_t());
    case DType::kQUInt16:
      return fn(uint16_t());
    case DType::kQInt32:
      return fn(int32_t());
    default:
      return Unimplemented("no kernel for elements of ", type);
  }
}

template <typename T>
constexpr double kLowest = static_cast<double>(std::numeric_limits<T>::lowest());
template <typename T>
constexpr double kHighest = static_cast<double>(std::numeric_limits<T>::max());
/// Where the middle of the unsigned integers lies for signed ones.
template <typename T>
constexpr float kHalf = std::is_signed_v<T> ? static_cast<float>((kHighest<T> - kLowest<T> + 1) / 2)
                                            : 0.0f;

/// The T next to `x`, which is a whole number.
template <typename T>
T Saturated(float x) {
  if (!(x > static_cast<float>(kLowest<T>))) return std::numeric_limits<T>::lowest();
  return x >= static_cast<float>(kHighest<T>) ? std::numeric_limits<T>::max() : static_cast<T>(x);
}

/// A range of floats.
struct ValueRange {
  float min, max;
};

/// A range that holds 0 and is not too small.
StatusOr<ValueRange> UsedRange(ValueRange given, const Way& way) {
  if (given.max < given.min) {
    return InvalidArgument("input_max_range must be larger than input_min_range, found ", given.max,
                           " and ", given.min);
  }
  ValueRange used;
  used.min = std::min(0.0f, given.min);
  const float least =
      std::max({1.0f, std::fabs(given.min), std::fabs(given.max)}) * way.least_range;
  used.max = std::max({given.max, used.min + least, 0.0f});
  return used;
}

/// The range that a scale with 0 in the middle has, of which one end is that of `range`.
template <typename T>
float ScaleOf(bool narrow, ValueRange* range) {
  const float lowest = static_cast<float>(kLowest<T>) + (narrow ? 1.0f : 0.0f);
  const float highest = static_cast<float>(kHighest<T>);
  constexpr float kNone = std::numeric_limits<float>::max();
  const float by_min = lowest * range->min > 0 ? lowest / range->min : kNone;
  const float by_max = highest * range->max > 0 ? highest / range->max : kNone;
  const float scale = std::min(by_min, by_max);
  *range = {lowest / scale, highest / scale};
  return scale;
}

template <typename T>
T Quantised(float x, const Way& way, const ValueRange& range, float scale) {
  if (way.mode == Mode::kMinFirst) {
    const float first = std::round(range.min * scale), at = std::round(x * scale);
    const float lowest = first - static_cast<float>(kLowest<T>);
    return Saturated<T>(at - lowest);
  }
  const float inside = std::max(std::min(x, range.max), range.min);
  if (way.mode == Mode::kScaled) {
    const float steps = inside * scale;
    return Saturated<T>(way.half_to_even ? std::rint(steps) : std::round(steps));
  }
  const float steps = (inside - range.min) * scale;
  return Saturated<T>(std::is_signed_v<T> ? std::round(steps - kHalf<T>)
                                          : std::floor(steps + 0.5f));
}

template <typename T>
float QuantisedScale(const Way& way, ValueRange* range) {
  if (way.mode == Mode::kScaled) return ScaleOf<T>(way.narrow, range);
  const double steps = kHighest<T> - kLowest<T>;
  if (way.mode == Mode::kMinFirst) return static_cast<float>(steps / (range->max - range->min));
  return static_cast<float>(steps) / (range->max - range->min);
}

/// The ends of each channel's range, inputs 1 and 2: scalars without an axis, else vectors.
Status CheckRanges(const KernelContext& ctx, const Way& way, int64_t channels) {
  for (const int i : {1, 2}) {
    const Tensor& t = ctx.input(i);
    if (t.num_elements() == channels && (way.axis < 0 || t.rank() == 1)) continue;
    return InvalidArgument(i == 1 ? "min_range" : "max_range", " must have ", channels,
                           way.axis < 0 ? " element" : " elements, a vector", ", found shape ",
                           t.shape());
  }
  if (way.mode == Mode::kMinFirst && channels != 1) {
    return Unimplemented("MIN_FIRST mode is not implemented with axis != -1.");
  }
  return OkStatus();
}

Status QuantizeKernel(KernelContext& ctx, const Tensor& x, const Way& way) {
  TENON_ASSIGN_OR_RETURN(const Channels channels, ChannelsOf(x, way.axis));
  TENON_RETURN_IF_ERROR(CheckRanges(ctx, way, channels.count));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape()));
  const Shape ends = channels.count == 1 ? Shape() : Shape{channels.count};
  TENON_ASSIGN_OR_RETURN(Tensor * min, ctx.AllocateOutput(1, ends));
  TENON_ASSIGN_OR_RETURN(Tensor * max, ctx.AllocateOutput(2, ends));
  return DispatchQuantised(y->dtype(), [&]<typename T>(T) -> Status {
    const float* const in = x.data<float>();
    T* const out = static_cast<T*>(y->raw_data());
    for (int64_t c = 0; c < channels.count && !Interrupted(); ++c) {
      TENON_ASSIGN_OR_RETURN(
          ValueRange range,
          UsedRange({ctx.input(1).data<float>()[c], ctx.input(2).data<float>()[c]}, way));
      const float scale = QuantisedScale<T>(way, &range);
      ForEachOf(channels, c, [&](int64_t i) { out[i] = Quantised<T>(in[i], way, range, scale); });
      min->data<float>()[c] = range.min;
      max->data<float>()[c] = range.max;
    }
    return OkStatus();
  });
}

/// x * scale + offset, in which a quantised x is a float again. `half` is added to it before.
struct Line {
  float half = 0, scale = 1, offset = 0;

  float operator()(float x) const {
    const float scaled = (x + half) * scale;
    return scaled + offset;
  }
};

template <typename T>
Line LineOf(const Way& way, const ValueRange& range) {
  const float lowest = static_cast<float>(kLowest<T>), highest = static_cast<float>(kHighest<T>);
  if (way.mode == Mode::kMinCombined) {
    return {kHalf<T>, (range.max - range.min) / (highest - lowest), range.min};
  }
  if (way.mode == Mode::kMinFirst) {
    const auto scale = static_cast<float>((range.max - range.min) / (kHighest<T> - kLowest<T>));
    const float first = range.max == range.min ? range.min : std::round(range.min / scale) * scale;
    const float steps = lowest * scale;
    return {0, scale, first - steps};
  }
  if (!std::is_signed_v<T>) return {.scale = range.max / highest};
  const float used = way.narrow ? lowest + 1 : lowest;
  return {.scale = std::max(range.min / used, range.max / highest)};
}

Status DequantizeKernel(KernelContext& ctx, const Tensor& x, const Way& way) {
  TENON_ASSIGN_OR_RETURN(const Channels channels, ChannelsOf(x, way.axis));
  TENON_RETURN_IF_ERROR(CheckRanges(ctx, way, channels.count));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape()));
  return DispatchQuantised(x.dtype(), [&]<typename From>(From) {
    return DispatchStatus(y->dtype(), TypeList<float, BFloat16>(), [&]<typename To>(To) {
      const From* const in = static_cast<const From*>(x.raw_data());
      To* const out = y->data<To>();
      for (int64_t c = 0; c < channels.count && !Interrupted(); ++c) {
        const Line line =
            LineOf<From>(way, {ctx.input(1).data<float>()[c], ctx.input(2).data<float>()[c]});
        ForEachOf(channels, c, [&](int64_t i) { out[i] = To(line(static_cast<float>(in[i]))); });
      }
    });
  });
}

Status QuantizeShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const int64_t axis, c.Attr<int64_t>("axis"));
  const PartialShape& in = c.input(0);
  c.set_output(0, in);
  PartialShape ends;
  if (axis == -1) ends = Shape();
  // The ranges of a single channel are scalars.
  if (axis >= 0 && axis < in.rank() && in.dim(static_cast<int>(axis)) >= 0) {
    const int64_t channels = in.dim(static_cast<int>(axis));
    ends = channels == 1 ? PartialShape(Shape()) : PartialShape{channels};
  }
  c.set_output(1, ends);
  c.set_output(2, ends);
  return OkStatus();
}

}  // namespace

void RegisterQuantize(OpRegistry& ops) {
  const Tensor min = Tensor::Scalar(-1.0f), max = Tensor::Scalar(1.5f);
  const Tensor mins = Tensor::Vector<float>({-1, 0, -2}), maxs = Tensor::Vector<float>({1, 2, 0.5});
  ops.Add("QuantizeV2", QuantizeShape, QuantizeKernel)
      .Example({Shape{2, 3}, min, max}, {{"T", DType::kQUInt8}})
      .Example({Shape{2, 3}, mins, maxs}, {{"T", DType::kQInt16}, {"axis", 1}, {"mode", "SCALED"}});
  const Tensor bytes = Tensor::Of<uint8_t>({2, 3}, {0, 1, 2, 128, 254, 255});
  ops.Add("Dequantize", UnchangedShape, DequantizeKernel)
      .Example({bytes.BitcastTo(DType::kQUInt8, {2, 3}), min, max})
      .Example({bytes.BitcastTo(DType::kQInt8, {2, 3}), mins, maxs},
               {{"axis", 1}, {"mode", "SCALED"}, {"dtype", DType::kFloat}});
}

}  // namespace tenon
