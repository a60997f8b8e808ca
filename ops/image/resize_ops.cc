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
#include "ops/maths.h"

namespace tenon {

Status CheckImages(const Tensor& t, std::string_view what, bool gradient) {
  if (t.rank() == 4 && (gradient || (t.dim(1) > 0 && t.dim(2) > 0 && t.dim(3) > 0))) {
    return OkStatus();
  }
  return InvalidArgument(
      what, " must be [batch, height, width, channels] with pixels, found shape ", t.shape());
}

namespace {

Status CheckCenters(bool align, bool half) {
  if (!align || !half) return OkStatus();
  return InvalidArgument("If half_pixel_centers is True, align_corners must be False.");
}

}  // namespace

Status CheckResizeGradient(const Tensor& dy, const Tensor& image, bool align, bool half) {
  TENON_RETURN_IF_ERROR(CheckImages(dy, "grads", true));
  TENON_RETURN_IF_ERROR(CheckImages(image, "original_image", true));
  if (image.dim(1) == 0 || image.dim(2) == 0) {
    return InvalidArgument("original_image must have pixels, found shape ", image.shape());
  }
  return CheckCenters(align, half);
}

StatusOr<DimVector> ReadResize(const Tensor& t, bool align, bool half) {
  TENON_RETURN_IF_ERROR(CheckCenters(align, half));
  TENON_ASSIGN_OR_RETURN(const DimVector size, ReadIntegerVector(t, "size", 2));
  if (size[0] > 0 && size[1] > 0) return size;
  return InvalidArgument("output dimensions must be positive, found ", size[0], " x ", size[1]);
}

namespace {

/// Where the pixels of a resized row or column come from.
struct Scale {
  Scale(int64_t from, int64_t to, bool align, bool half)
      : factor(ResizeFactor(from, to, align)), limit(from - 1), half_pixels(half), aligned(align) {}
  /// The two pixels around the place of pixel `i`, and how near it is to the second.
  struct Pair {
    int64_t low, high;
    float weight;
  };
  Pair Linear(int64_t i) const {
    const float at = half_pixels ? (static_cast<float>(i) + 0.5f) * factor - 0.5f
                                 : static_cast<float>(i) * factor;
    const float floor = std::floor(at);
    return {std::clamp<int64_t>(static_cast<int64_t>(floor), 0, limit),
            std::clamp<int64_t>(static_cast<int64_t>(std::ceil(at)), 0, limit), at - floor};
  }
  int64_t Nearest(int64_t i) const {
    const float at =
        half_pixels ? (static_cast<float>(i) + 0.5f) * factor : static_cast<float>(i) * factor;
    return std::clamp<int64_t>(static_cast<int64_t>(aligned ? std::round(at) : std::floor(at)), 0,
                               limit);
  }
  float factor;
  int64_t limit;
  bool half_pixels, aligned;
};

/// A row of an image, as wide as the result: its pixels are mixtures of two.
template <typename T>
class WidenedRow {
 public:
  /// The row that was widened last, or null.
  const T* row() const { return row_; }

  const float* Of(const T* row, absl::Span<const Scale::Pair> places, int64_t channels) {
    if (row == row_) return line_.data();
    row_ = row;
    line_.resize(places.size() * channels);
    if (channels == 1) {
      Widen(places, std::integral_constant<int64_t, 1>());
    } else if (channels == 3) {
      Widen(places, std::integral_constant<int64_t, 3>());
    } else {
      Widen(places, channels);
    }
    return line_.data();
  }

 private:
  template <typename Channels>
  void Widen(absl::Span<const Scale::Pair> places, Channels channels) {
    float* to = line_.data();
    for (size_t i = 0; i < places.size(); ++i) {
      if (i % kStepsBetweenLooks == 0 && Interrupted()) return;
      const Scale::Pair& x = places[i];
      const T *const left = row_ + x.low * channels, *const right = row_ + x.high * channels;
      for (int64_t c = 0; c < channels; ++c) {
        const auto a = static_cast<float>(left[c]);
        *to++ = a + (static_cast<float>(right[c]) - a) * x.weight;
      }
    }
  }

  CountedVector<float> line_;
  const T* row_ = nullptr;
};

Status BilinearKernel(KernelContext& ctx, const Tensor& in, bool align, bool half) {
  TENON_RETURN_IF_ERROR(CheckImages(in, "images"));
  TENON_ASSIGN_OR_RETURN(const DimVector size, ReadResize(ctx.input(1), align, half));
  const int64_t height = in.dim(1), width = in.dim(2), channels = in.dim(3);
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.CreateOutput(0, {in.dim(0), size[0], size[1], channels}));
  if (out->num_elements() == 0) return OkStatus();
  // Infinite pixels of images that keep their size do not touch their neighbours.
  const bool same = size[0] == height && size[1] == width;
  const Scale rows(height, size[0], align && !same, half && !same),
      columns(width, size[1], align && !same, half && !same);
  CountedVector<Scale::Pair> places;
  for (int64_t x = 0; x < size[1]; ++x) places.push_back(columns.Linear(x));
  return DispatchStatus(in.dtype(), ImageTypes(), [&]<typename T>(T) {
    const int64_t line = size[1] * channels;
    ParallelFor(in.dim(0) * size[0], static_cast<double>(line), [&](int64_t begin, int64_t end) {
      // A row of the image that two of the result's lie at is widened once.
      WidenedRow<T> top, bottom;
      for (int64_t row = begin; row < end && !Interrupted(); ++row) {
        const Scale::Pair y = rows.Linear(row % size[0]);
        const T* const image = in.data<T>() + row / size[0] * height * width * channels;
        const T* const low = image + y.low * width * channels;
        float* const to = out->data<float>() + row * line;
        if (same) {
          for (int64_t i = 0; i < line; ++i) to[i] = static_cast<float>(low[i]);
          continue;
        }
        if (bottom.row() == low) std::swap(top, bottom);
        const float* const above = top.Of(low, places, channels);
        const T* const high = image + y.high * width * channels;
        const float* const below = high == low ? above : bottom.Of(high, places, channels);
        TENON_SIMD
        for (int64_t i = 0; i < line; ++i) to[i] = above[i] + (below[i] - above[i]) * y.weight;
      }
    });
  });
}

Status BilinearGradKernel(KernelContext& ctx, bool align, bool half) {
  const Tensor &dy = ctx.input(0), &image = ctx.input(1);
  TENON_RETURN_IF_ERROR(CheckResizeGradient(dy, image, align, half));
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.CreateOutput(0, {dy.dim(0), image.dim(1), image.dim(2), dy.dim(3)}));
  ZeroElements(out);
  if (dy.num_elements() == 0) return OkStatus();
  const int64_t height = image.dim(1), width = image.dim(2), channels = dy.dim(3);
  const Scale rows(height, dy.dim(1), align, half), columns(width, dy.dim(2), align, half);
  const int64_t size = dy.dim(1) * dy.dim(2) * channels;
  return DispatchStatus(image.dtype(), FloatTypes(), [&]<typename T>(T) {
    ParallelFor(dy.dim(0), 4 * static_cast<double>(size), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const float* from = dy.data<float>() + b * size;
        T* const to = out->data<T>() + b * height * width * channels;
        const auto add = [&](int64_t y, int64_t x, float y_weight, float x_weight) {
          T* const pixel = to + (y * width + x) * channels;
          for (int64_t c = 0; c < channels; ++c) {
            pixel[c] = static_cast<T>(pixel[c] + static_cast<T>(from[c] * y_weight * x_weight));
          }
        };
        for (int64_t i = 0; i < dy.dim(1) && !Interrupted(); ++i) {
          const Scale::Pair y = rows.Linear(i);
          SerialFor(dy.dim(2), 4 * static_cast<double>(channels), [&](int64_t k, int64_t last) {
            for (; k < last; ++k, from += channels) {
              const Scale::Pair x = columns.Linear(k);
              add(y.low, x.low, 1 - y.weight, 1 - x.weight);
              add(y.low, x.high, 1 - y.weight, x.weight);
              add(y.high, x.low, y.weight, 1 - x.weight);
              add(y.high, x.high, y.weight, x.weight);
            }
          });
        }
      }
    });
  });
}

Status NearestKernel(KernelContext& ctx, const Tensor& in, bool align, bool half) {
  TENON_RETURN_IF_ERROR(CheckImages(in, "images"));
  TENON_ASSIGN_OR_RETURN(const DimVector size, ReadResize(ctx.input(1), align, half));
  const int64_t channels = in.dim(3);
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.CreateOutput(0, {in.dim(0), size[0], size[1], channels}));
  if (out->num_elements() == 0) return OkStatus();
  const Scale rows(in.dim(1), size[0], align, half), columns(in.dim(2), size[1], align, half);
  CountedVector<int64_t> places;
  for (int64_t x = 0; x < size[1]; ++x) places.push_back(columns.Nearest(x));
  return DispatchStatus(in.dtype(), ImageTypes(), [&]<typename T>(T) {
    const double cost = static_cast<double>(size[1] * (1 + channels));
    ParallelFor(in.dim(0) * size[0], cost, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t y = row / size[0] * in.dim(1) + rows.Nearest(row % size[0]);
        const T* const from = in.data<T>() + y * in.dim(2) * channels;
        T* const to = out->data<T>() + row * size[1] * channels;
        SerialFor(size[1], static_cast<double>(1 + channels), [&](int64_t first, int64_t last) {
          for (int64_t x = first; x < last; ++x) {
            std::copy_n(from + places[x] * channels, channels, to + x * channels);
          }
        });
      }
    });
    return OkStatus();
  });
}

Status NearestGradKernel(KernelContext& ctx, const Tensor& dy, bool align, bool half) {
  TENON_RETURN_IF_ERROR(CheckImages(dy, "grads", true));
  TENON_ASSIGN_OR_RETURN(const DimVector size, ReadResize(ctx.input(1), false, half));
  const int64_t channels = dy.dim(3);
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.CreateOutput(0, {dy.dim(0), size[0], size[1], channels}));
  ZeroElements(out);
  if (dy.num_elements() == 0) return OkStatus();
  const Scale rows(size[0], dy.dim(1), align, half), columns(size[1], dy.dim(2), align, half);
  return DispatchStatus(dy.dtype(), ImageTypes(), [&]<typename T>(T) {
    const double cost = 2 * static_cast<double>(dy.dim(1) * dy.dim(2) * channels);
    ParallelFor(dy.dim(0), cost, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const T* from = dy.data<T>() + b * dy.dim(1) * dy.dim(2) * channels;
        for (int64_t y = 0; y < dy.dim(1) && !Interrupted(); ++y) {
          T* const row = out->data<T>() + (b * size[0] + rows.Nearest(y)) * size[1] * channels;
          SerialFor(dy.dim(2), 2 * static_cast<double>(channels), [&](int64_t x, int64_t last) {
            for (; x < last; ++x) {
              T* const pixel = row + columns.Nearest(x) * channels;
              for (int64_t c = 0; c < channels; ++c, ++from) {
                using C = ComputeType<T>;
                pixel[c] = static_cast<T>(Plus(static_cast<C>(pixel[c]), static_cast<C>(*from)));
              }
            }
          });
        }
      }
    });
  });
}

/// Height and width of images, as resizing takes them.
Output SizeOfImages(const Output& images) { return Slice(ShapeVector(images), {1}, {2}); }

}  // namespace

void RegisterResizeOps(OpRegistry& ops) {
  const KernelOptions options = {.attrs = {"align_corners", "half_pixel_centers"}};
  const Tensor size = Tensor::Vector({5, 3});
  ops.Add("ResizeBilinear", BilinearKernel, options)
      .Grad([](GradContext& g) {
        g.dx(0) = ResizeBilinearGrad(g.dy(0), g.in(0),
                                     {.align_corners = g.Attr<bool>("align_corners"),
                                      .half_pixel_centers = g.Attr<bool>("half_pixel_centers")});
      })
      .Example({Shape{2, 4, 6, 2}, size})
      .Example({Shape{2, 4, 6, 2}, size}, {{"align_corners", true}});
  ops.Add("ResizeBilinearGrad", BilinearGradKernel, options)
      .Example({Shape{2, 5, 3, 2}, Shape{2, 4, 6, 2}});
  ops.Add("ResizeNearestNeighbor", NearestKernel, options)
      .Grad([](GradContext& g) {
        g.dx(0) =
            ResizeNearestNeighborGrad(g.dy(0), SizeOfImages(g.in(0)),
                                      {.align_corners = g.Attr<bool>("align_corners"),
                                       .half_pixel_centers = g.Attr<bool>("half_pixel_centers")});
      })
      .Example({Shape{2, 4, 6, 2}, size})
      .Example({Shape{2, 4, 6, 2}, size}, {{"half_pixel_centers", true}});
  ops.Add("ResizeNearestNeighborGrad", NearestGradKernel, options)
      .Example({Shape{2, 5, 3, 2}, Tensor::Vector({4, 6})});
}

}  // namespace tenon
