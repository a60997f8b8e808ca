// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/image/image_ops.h"
#include "ops/image/resizing.h"
#include "ops/linalg/linalg_ops.h"

namespace tenon {
namespace {

using TransformTypes = TypeList<float, double, Half, int32_t, int64_t, uint8_t>;

/// A place outside [0, size - 1] as one inside. Places too far away to tell are 0.
using FillMode = float (*)(float at, int64_t size);

/// dcba|abcd|dcba
float Reflected(float at, int64_t size) {
  const auto period = static_cast<float>(2 * size);
  if (size <= 1 || !(std::abs(at) < 1e18f)) return 0;
  if (at < 0) {
    at = period * std::trunc(-at / period) + at;
    return at < static_cast<float>(-size) ? at + period : -at - 1;
  }
  if (at <= static_cast<float>(size - 1)) return at;
  at -= period * std::trunc(at / period);
  return at >= static_cast<float>(size) ? period - at - 1 : at;
}

/// abcd|abcd|abcd
float Wrapped(float at, int64_t size) {
  const auto length = static_cast<float>(size), last = static_cast<float>(size - 1);
  if (size <= 1 || !(std::abs(at) < 1e18f)) return 0;
  if (at < 0) return at + length * (std::trunc(-at / last) + 1);
  return at > last ? at - length * std::trunc(at / last) : at;
}

struct Projecting : KernelState {
  explicit Projecting(KernelConstruction& c) {
    const std::string how = c.Attr<std::string>("interpolation");
    const std::string mode = c.Attr<std::string>("fill_mode");
    linear = how == "BILINEAR";
    if (!linear && how != "NEAREST") {
      c.Fail(InvalidArgument("interpolation is '", how, "', wanted NEAREST or BILINEAR"));
    }
    if (mode == "REFLECT") fill = Reflected;
    if (mode == "WRAP") fill = Wrapped;
    if (mode == "NEAREST") fill = [](float at, int64_t) { return at; };
    if (fill == nullptr && mode != "CONSTANT") {
      c.Fail(
          InvalidArgument("fill_mode is '", mode, "', wanted REFLECT, WRAP, CONSTANT or NEAREST"));
    }
  }
  bool linear = false;
  FillMode fill = nullptr;  // null: a constant outside
};

/// As a float becomes an integer: what does not fit wraps.
template <typename T>
T FillValue(float v) {
  if constexpr (!std::is_integral_v<T>) return static_cast<T>(v);
  return static_cast<T>(static_cast<int64_t>(std::clamp(std::isnan(v) ? 0 : v, -1e18f, 1e18f)));
}

Status ProjectKernel(KernelContext& ctx, const Projecting& how) {
  const Tensor &images = ctx.input(0), &transforms = ctx.input(1);
  TENON_RETURN_IF_ERROR(CheckImages(images, "images", true));
  const int64_t batch = images.dim(0), height = images.dim(1), width = images.dim(2),
                channels = images.dim(3);
  if (transforms.shape() != Shape{1, 8} && transforms.shape() != Shape{batch, 8}) {
    return InvalidArgument("transforms must be [", batch, ", 8] or [1, 8], found shape ",
                           transforms.shape());
  }
  TENON_ASSIGN_OR_RETURN(const DimVector size, ReadResize(ctx.input(2), false, false));
  float outside = 0;
  if (ctx.num_inputs() > 3) {
    outside = ctx.input(3).scalar<float>();
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, {batch, size[0], size[1], channels}));
  if (out->num_elements() == 0) return OkStatus();
  return DispatchStatus(images.dtype(), TransformTypes(), [&]<typename T>(T) {
    const T constant = FillValue<T>(outside);
    const double cost = 5 * static_cast<double>(size[1] * (2 + channels));
    ParallelFor(batch * size[0], cost, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t b = row / size[0];
        const float* const t = transforms.data<float>() + (transforms.dim(0) == 1 ? 0 : b * 8);
        const T* const image = images.data<T>() + b * height * width * channels;
        T* const to = out->data<T>() + row * size[1] * channels;
        const auto read = [&](int64_t y, int64_t x, int64_t c) {
          const bool inside = y >= 0 && y < height && x >= 0 && x < width;
          return inside ? image[(y * width + x) * channels + c] : constant;
        };
        const auto project_pixel = [&](int64_t i, T* pixel) {
          const auto out_y = static_cast<float>(row % size[0]), out_x = static_cast<float>(i);
          // Fused operations would round otherwise, and places at an edge come to its other side.
          const auto project = [=](float a, float b, float c) {
            const float along_x = a * out_x, along_y = b * out_y;
            return along_x + along_y + c;
          };
          const float divisor = project(t[6], t[7], 1);
          float x = project(t[0], t[1], t[2]) / divisor, y = project(t[3], t[4], t[5]) / divisor;
          const auto last_x = static_cast<float>(width - 1),
                     last_y = static_cast<float>(height - 1);
          if (how.fill != nullptr) {
            x = std::clamp(how.fill(x, width), 0.0f, std::max(last_x, 0.0f));
            y = std::clamp(how.fill(y, height), 0.0f, std::max(last_y, 0.0f));
          }
          // Beyond all images, or no place at all.
          if (divisor == 0 || !(std::abs(x) < 1e9f && std::abs(y) < 1e9f)) {
            std::fill_n(pixel, channels, constant);
            return;
          }
          if (!how.linear) {
            const int64_t from_y = std::lround(y), from_x = std::lround(x);
            return SerialFor(channels, 2, [&](int64_t first, int64_t last) {
              for (int64_t c = first; c < last; ++c) pixel[c] = read(from_y, from_x, c);
            });
          }
          const float low_y = std::floor(y), low_x = std::floor(x);
          const float right = x - low_x, below = y - low_y, left = low_x + 1 - x,
                      above = low_y + 1 - y;
          const auto top = static_cast<int64_t>(low_y), first = static_cast<int64_t>(low_x);
          const auto mix_channel = [&](int64_t c) {
            const auto mix = [&](int64_t from) {
              const float a = left * static_cast<float>(read(from, first, c));
              const float b = right * static_cast<float>(read(from, first + 1, c));
              return a + b;
            };
            const float a = above * mix(top), b = below * mix(top + 1);
            pixel[c] = static_cast<T>(a + b);
          };
          SerialFor(channels, 5, [&](int64_t begin_channel, int64_t end_channel) {
            for (int64_t c = begin_channel; c < end_channel; ++c) mix_channel(c);
          });
        };
        SerialFor(size[1], cost / static_cast<double>(size[1]), [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) project_pixel(i, to + i * channels);
        });
      }
    });
  });
}

/// Takes the gradient back by the inverse transform, which is how TensorFlow defines it.
void ProjectGrad(GradContext& g) {
  const Output count = Slice(ShapeVector(g.in(1)), {0}, {1});
  const Output ones = Fill(ConcatV2({count, {1}}, 0), 1.0f);
  const Output matrices = Reshape(ConcatV2({g.in(1), ones}, 1), {-1, 3, 3});
  const Output inverse = Reshape(MatrixInverse(matrices), {-1, 9});
  const Output back = Slice(inverse / Slice(inverse, {0, 8}, {-1, 1}), {0, 0}, {-1, 8});
  NodeBuilder builder(g.node().op());
  builder.Input(g.dy(0)).Input(back).Input(Slice(ShapeVector(g.in(0)), {1}, {2}));
  if (g.num_inputs() > 3) builder.Input(0.0f);
  builder.Attr("interpolation", g.Attr<std::string>("interpolation"));
  builder.Attr("fill_mode", g.Attr<std::string>("fill_mode"));
  g.dx(0) = builder.Output();
}

}  // namespace

void RegisterProjectiveTransformOps(OpRegistry& ops) {
  const auto turn = Tensor::Of<float>({1, 8}, {0.8f, 0.3f, 0.5f, -0.3f, 0.9f, 1, 0.01f, 0.02f});
  const Tensor size = Tensor::Vector({5, 4});
  ops.Add("ImageProjectiveTransformV2", ProjectKernel)
      .Grad(ProjectGrad)
      .Example({Shape{2, 6, 7, 2}, turn, size}, {{"interpolation", "BILINEAR"}});
  ops.Add("ImageProjectiveTransformV3", ProjectKernel)
      .Grad(ProjectGrad)
      .Example({Shape{2, 6, 7, 2}, turn, size, Tensor::Scalar(3.0f)},
               {{"interpolation", "NEAREST"}, {"fill_mode", "REFLECT"}});
}

}  // namespace tenon
