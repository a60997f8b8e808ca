// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/image/resizing.h"
#include "ops/random/draws.h"

namespace tenon {
namespace {

enum class Noise { kUniform, kGaussian, kZero };

struct Glimpses : KernelState {
  explicit Glimpses(KernelConstruction& c)
      : first_version(c.op() == "ExtractGlimpse"),
        normalized(c.Attr<bool>("normalized")),
        centered(c.Attr<bool>("centered")) {
    const std::string name = c.Attr<std::string>("noise");
    const bool uniform = c.Attr<bool>("uniform_noise");
    noise = name == "uniform" || (name.empty() && uniform) ? Noise::kUniform
            : name == "zero"                               ? Noise::kZero
                                                           : Noise::kGaussian;
    if (!name.empty() && name != "uniform" && name != "gaussian" && name != "zero") {
      c.Fail(InvalidArgument("noise is '", name, "', wanted uniform, gaussian or zero"));
    } else if (uniform && !name.empty() && name != "uniform") {
      c.Fail(InvalidArgument("uniform_noise is set and noise is '", name, "'"));
    }
  }

  /// Where a glimpse begins along a side, at an offset as the node counts it.
  int64_t Begin(float offset, int64_t side, int64_t glimpse) const {
    const auto length = static_cast<float>(side);
    if (normalized) offset *= length;
    if (centered && (first_version || normalized)) offset /= 2;
    if (centered) offset += length / 2;
    if (first_version || (centered && normalized)) offset -= static_cast<float>(glimpse) / 2;
    constexpr float kFar = 1e12f;
    return static_cast<int64_t>(offset > -kFar ? std::min(offset, kFar) : -kFar);
  }

  bool first_version, normalized, centered;
  Noise noise;
};

/// The part of a side that a glimpse shows: `count` pixels from `from` on, put at `to`.
struct Seen {
  Seen(int64_t begin, int64_t side, int64_t glimpse)
      : partial(begin < 0 || begin + glimpse >= side),
        count(std::clamp<int64_t>(begin < 0 ? glimpse + begin : side - begin, 0,
                                  std::min(side, glimpse))),
        from(std::max<int64_t>(begin, 0)),
        to(begin < 0 ? std::min(-begin, glimpse) : 0) {}
  bool partial;  // as TensorFlow has it, also when the glimpse ends where the side does
  int64_t count, from, to;
};

/// Noise like the image: between its least and greatest element, or normal with the mean and
/// deviation of each channel and within its range.
void FillNoise(Noise noise, const float* image, int64_t size, int64_t channels, WordDraws& draws,
               float* to, int64_t count) {
  if (noise == Noise::kZero || size == 0) {
    std::fill_n(to, count, 0.0f);
    return;
  }
  if (noise == Noise::kUniform) {
    const auto [low, high] = std::minmax_element(image, image + size);
    for (int64_t i = 0; i < count; ++i) to[i] = *low + draws.Float() * (*high - *low);
    return;
  }
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0, squares = 0;
    float low = image[c], high = image[c];
    for (int64_t i = c; i < size; i += channels) {
      sum += image[i];
      low = std::min(low, image[i]);
      high = std::max(high, image[i]);
    }
    const double n = static_cast<double>(size / channels), mean = sum / n;
    for (int64_t i = c; i < size; i += channels) squares += (image[i] - mean) * (image[i] - mean);
    const double deviation = std::sqrt(squares / n);
    for (int64_t i = c; i < count; i += channels) {
      const double radius = std::sqrt(-2 * std::log(1 - draws.Double()));
      const double normal = radius * std::cos(2 * std::numbers::pi * draws.Double());
      to[i] = std::max(std::min(static_cast<float>(mean + deviation * normal), high), low);
    }
  }
}

Status GlimpseKernel(KernelContext& ctx, const Glimpses& node) {
  const Tensor &in = ctx.input(0), &offsets = ctx.input(2);
  TENON_RETURN_IF_ERROR(CheckImages(in, "input", true));
  TENON_ASSIGN_OR_RETURN(const DimVector size, ReadIntegerVector(ctx.input(1), "size", 2));
  if (offsets.shape() != Shape{in.dim(0), 2}) {
    return InvalidArgument("offsets must be [", in.dim(0), ", 2], found shape ", offsets.shape());
  }
  const int64_t height = in.dim(1), width = in.dim(2), channels = in.dim(3);
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.CreateOutput(0, {in.dim(0), size[0], size[1], channels}));
  if (out->num_elements() == 0) return OkStatus();
  WordDraws draws(Philox::FromSeeds(0, 0));
  for (int64_t b = 0; b < in.dim(0) && !Interrupted(); ++b) {
    const float* const image = in.data<float>() + b * height * width * channels;
    float* const to = out->data<float>() + b * size[0] * size[1] * channels;
    const float* const offset = offsets.data<float>() + 2 * b;
    const Seen y(node.Begin(offset[0], height, size[0]), height, size[0]);
    const Seen x(node.Begin(offset[1], width, size[1]), width, size[1]);
    if (y.partial || x.partial) {
      FillNoise(node.noise, image, height * width * channels, channels, draws, to,
                size[0] * size[1] * channels);
    }
    for (int64_t i = 0; i < y.count; ++i) {
      std::copy_n(image + ((y.from + i) * width + x.from) * channels, x.count * channels,
                  to + ((y.to + i) * size[1] + x.to) * channels);
    }
  }
  return OkStatus();
}

}  // namespace

void RegisterGlimpseOps(OpRegistry& ops) {
  const auto offsets = Tensor::Of<float>({2, 2}, {0.1f, -0.2f, 0.3f, 0});
  for (const char* const op : {"ExtractGlimpse", "ExtractGlimpseV2"}) {
    ops.Add(op, GlimpseKernel).Example({Shape{2, 6, 8, 2}, Tensor::Vector({2, 3}), offsets});
  }
}

}  // namespace tenon
