// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/image/image_ops.h"
#include "ops/image/resizing.h"

namespace tenon {
namespace {

/// The four pixels of a row or column that one of the resized is made of.
struct CubicTaps {
  int64_t at[4];
  float weight[4];
};

/// Cubic convolution (Keys 1981) for pixel `i`, with distances in steps of 1/1024.
CubicTaps TapsOf(int64_t i, float factor, int64_t size, bool half_pixels) {
  const float scaled =
      half_pixels ? (static_cast<float>(i) + 0.5f) * factor - 0.5f : static_cast<float>(i) * factor;
  const double a = half_pixels ? -0.5 : -0.75;
  const float floor = std::floor(scaled);
  const auto pixel = static_cast<int64_t>(floor);
  const double near = static_cast<double>(std::lrint((scaled - floor) * 1024)) / 1024;
  const auto inner = [a](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto outer = [a](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const double weights[] = {outer(1 + near), inner(near), inner(1 - near), outer(2 - near)};
  CubicTaps taps;
  float sum = 0;
  for (int k = 0; k < 4; ++k) {
    taps.at[k] = std::clamp<int64_t>(pixel - 1 + k, 0, size - 1);
    // With half pixels those outside the image do not count, else its edge counts for them.
    const bool counts = !half_pixels || taps.at[k] == pixel - 1 + k;
    taps.weight[k] = counts ? static_cast<float>(weights[k]) : 0;
    sum += taps.weight[k];
  }
  if (half_pixels && std::abs(sum) >= 1000 * std::numeric_limits<float>::min()) {
    for (float& weight : taps.weight) weight *= 1 / sum;
  }
  return taps;
}

CountedVector<CubicTaps> AllTaps(int64_t from, int64_t to, bool align, bool half) {
  const float factor = ResizeFactor(from, to, align);
  CountedVector<CubicTaps> taps;
  for (int64_t i = 0; i < to; ++i) taps.push_back(TapsOf(i, factor, from, half));
  return taps;
}

Status BicubicKernel(KernelContext& ctx, const Tensor& in, bool align, bool half) {
  TENON_RETURN_IF_ERROR(CheckImages(in, "images"));
  TENON_ASSIGN_OR_RETURN(const DimVector size, ReadResize(ctx.input(1), align, half));
  const int64_t height = in.dim(1), width = in.dim(2), channels = in.dim(3);
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.CreateOutput(0, {in.dim(0), size[0], size[1], channels}));
  if (out->num_elements() == 0) return OkStatus();
  const auto rows = AllTaps(height, size[0], align, half),
             columns = AllTaps(width, size[1], align, half);
  const int64_t row_size = width * channels;
  return DispatchStatus(in.dtype(), ImageTypes(), [&]<typename T>(T) {
    const double cost = static_cast<double>(row_size) + 2 * static_cast<double>(size[1] * channels);
    ParallelFor(in.dim(0) * size[0], cost, [&](int64_t begin, int64_t end) {
      CountedVector<float> mixed(row_size);  // the rows, as the new row needs them
      for (int64_t row = begin; row < end; ++row) {
        const T* const image = in.data<T>() + row / size[0] * height * row_size;
        const auto& [at, weight] = rows[row % size[0]];
        const T* const from[] = {image + at[0] * row_size, image + at[1] * row_size,
                                 image + at[2] * row_size, image + at[3] * row_size};
        SerialFor(row_size, 1, [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) {
            mixed[i] = static_cast<float>(from[0][i]) * weight[0] +
                       static_cast<float>(from[1][i]) * weight[1] +
                       static_cast<float>(from[2][i]) * weight[2] +
                       static_cast<float>(from[3][i]) * weight[3];
          }
        });
        float* const to = out->data<float>() + row * size[1] * channels;
        SerialFor(size[1], 2 * static_cast<double>(channels), [&](int64_t first, int64_t last) {
          float* element = to + first * channels;
          for (int64_t i = first; i < last; ++i) {
            const CubicTaps& x = columns[i];
            for (int64_t c = 0; c < channels; ++c) {
              float sum = 0;
              for (int k = 0; k < 4; ++k) sum += mixed[x.at[k] * channels + c] * x.weight[k];
              *element++ = sum;
            }
          }
        });
      }
    });
  });
}

Status BicubicGradKernel(KernelContext& ctx, bool align, bool half) {
  const Tensor &dy = ctx.input(0), &image = ctx.input(1);
  TENON_RETURN_IF_ERROR(CheckResizeGradient(dy, image, align, half));
  const int64_t height = image.dim(1), width = image.dim(2), channels = dy.dim(3);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, {dy.dim(0), height, width, channels}));
  ZeroElements(out);
  if (dy.num_elements() == 0) return OkStatus();
  const auto rows = AllTaps(height, dy.dim(1), align, half),
             columns = AllTaps(width, dy.dim(2), align, half);
  const int64_t size = dy.dim(1) * dy.dim(2) * channels;
  return DispatchStatus(image.dtype(), TypeList<float, double>(), [&]<typename T>(T) {
    ParallelFor(dy.dim(0), 16 * static_cast<double>(size), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const float* from = dy.data<float>() + b * size;
        T* const to = out->data<T>() + b * height * width * channels;
        for (const CubicTaps& y : rows) {
          if (Interrupted()) return;
          SerialFor(dy.dim(2), 16 * static_cast<double>(channels), [&](int64_t at, int64_t last) {
            for (; at < last; ++at, from += channels) {
              const CubicTaps& x = columns[at];
              for (int tap = 0; tap < 16; ++tap) {
                const int i = tap / 4, k = tap % 4;
                T* const pixel = to + (y.at[i] * width + x.at[k]) * channels;
                for (int64_t c = 0; c < channels; ++c) {
                  pixel[c] += static_cast<T>(from[c]) * y.weight[i] * x.weight[k];
                }
              }
            }
          });
        }
      }
    });
  });
}

/// The pixels [begin, end) of a row or column that one of the resized covers, in part.
struct Cover {
  Cover(int64_t i, float factor)
      : from(static_cast<float>(i) * factor),
        to(static_cast<float>(i + 1) * factor),
        width(factor),
        begin(static_cast<int64_t>(std::floor(from))),
        end(static_cast<int64_t>(std::ceil(to))) {}
  /// How much of `pixel` it covers.
  float Share(int64_t pixel) const {
    const auto left = static_cast<float>(pixel), right = static_cast<float>(pixel + 1);
    if (left < from) return right > to ? width : right - from;
    return right > to ? to - left : 1;
  }
  float from, to, width;
  int64_t begin, end;
};

Status AreaKernel(KernelContext& ctx, const Tensor& in, bool align) {
  TENON_RETURN_IF_ERROR(CheckImages(in, "images"));
  TENON_ASSIGN_OR_RETURN(const DimVector size, ReadResize(ctx.input(1), align, false));
  const int64_t height = in.dim(1), width = in.dim(2), channels = in.dim(3);
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.CreateOutput(0, {in.dim(0), size[0], size[1], channels}));
  const float rows = ResizeFactor(height, size[0], align);
  const float columns = ResizeFactor(width, size[1], align);
  const auto scale = static_cast<float>(1.0 / static_cast<double>(rows * columns));
  return DispatchStatus(in.dtype(), ImageTypes(), [&]<typename T>(T) {
    const double covered = (1 + rows) * (1 + columns) * static_cast<float>(channels);
    ParallelFor(
        in.dim(0) * size[0], covered * static_cast<double>(size[1]),
        [&](int64_t begin, int64_t end) {
          CountedVector<float> part(channels), sum(channels);
          for (int64_t row = begin; row < end; ++row) {
            const T* const image = in.data<T>() + row / size[0] * height * width * channels;
            const Cover y(row % size[0], rows);
            float* to = out->data<float>() + row * size[1] * channels;
            for (int64_t column = 0; column < size[1] && !Interrupted(); ++column, to += channels) {
              const Cover x(column, columns);
              std::fill(sum.begin(), sum.end(), 0.0f);
              for (int64_t i = y.begin; i < y.end && !Interrupted(); ++i) {
                const T* const line =
                    image + std::clamp<int64_t>(i, 0, height - 1) * width * channels;
                std::fill(part.begin(), part.end(), 0.0f);
                for (int64_t k = x.begin; k < x.end; ++k) {
                  const T* const pixel = line + std::clamp<int64_t>(k, 0, width - 1) * channels;
                  const float share = x.Share(k);
                  for (int64_t c = 0; c < channels; ++c)
                    part[c] += static_cast<float>(pixel[c]) * share;
                }
                const float share = y.Share(i);
                for (int64_t c = 0; c < channels; ++c) sum[c] += part[c] * share;
              }
              for (int64_t c = 0; c < channels; ++c) to[c] = sum[c] * scale;
            }
          }
        });
  });
}

}  // namespace

void RegisterCubicResizeOps(OpRegistry& ops) {
  const KernelOptions options = {.attrs = {"align_corners", "half_pixel_centers"}};
  const Tensor size = Tensor::Vector({5, 3});
  ops.Add("ResizeBicubic", BicubicKernel, options)
      .Grad([](GradContext& g) {
        const DType type = g.in(0).dtype();
        if (type != DType::kFloat && type != DType::kDouble) return;
        g.dx(0) = ResizeBicubicGrad(g.dy(0), g.in(0),
                                    {.align_corners = g.Attr<bool>("align_corners"),
                                     .half_pixel_centers = g.Attr<bool>("half_pixel_centers")});
      })
      .Example({Shape{2, 4, 6, 2}, size})
      .Example({Shape{2, 4, 6, 2}, size}, {{"half_pixel_centers", true}});
  ops.Add("ResizeBicubicGrad", BicubicGradKernel, options)
      .Example({Shape{2, 5, 3, 2}, Shape{2, 4, 6, 2}});
  ops.Add("ResizeArea", AreaKernel, {.attrs = {"align_corners"}})
      .Example({Shape{2, 4, 6, 2}, size});
}

}  // namespace tenon
