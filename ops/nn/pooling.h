// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/base/attributes.h"
#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "core/op/kernel.h"
#include "ops/maths.h"
#include "ops/nn/channel_blocks.h"
#include "ops/nn/windows.h"

// What max and average pooling share.

namespace tenon {

/// Pooling as images [batch, pixels, channels] that become [batch, windows, channels]: where
/// channels come first in memory, or windows lie along them, they are part of the batch.
struct Pooling {
  int64_t batch = 0, channels = 1;
  WindowAxes axes;
  DimVector output;  // the output's dimensions

  int64_t image() const { return Pixels(axes) * channels; }
  int64_t windows() const { return NumWindows(axes); }
  /// Guess of what one window costs, in ns.
  double cost() const {
    const double taps = static_cast<double>(axes[0].window) * static_cast<double>(axes[1].window) *
                        static_cast<double>(axes[2].window);
    const double pixels = static_cast<double>(Pixels(axes));
    return 5 + std::min(taps, pixels) * (1 + 0.03 * static_cast<double>(channels));
  }
};

/// How windows of w.ksize lie on an input. InvalidArgument for what cannot be: see Windows::Axis;
/// also windows that may lie outside the image. Unimplemented for some that lie along the channels.
StatusOr<Pooling> MakePooling(const Windows& w, const Shape& input);
/// The same without windows along the channels: InvalidArgument, with why not.
StatusOr<Pooling> MakeAveraging(const Windows& w, const Shape& input);
StatusOr<Pooling> MakePlacePooling(const Windows& w, const Shape& input);
/// The attributes of the node, or what its inputs `first` and the next say, if it has these.
StatusOr<Windows> WindowsOf(const KernelContext& ctx, const Windows& w, int first);

/// An element nearer than this to the largest of its window ties with it for MaxPool3DGrad, as in
/// TensorFlow's kernel for the CPU, which compares in the dtype of the elements.
inline constexpr float kMaxPool3DTie = 1e-5F;

// The pooling of gradients, whose inputs 1 and 2 are the output and the gradient that it gets:
// InvalidArgument also where these are not shaped so.

/// The pooling of MaxPoolGrad and MaxPool3DGrad.
StatusOr<Pooling> PoolingOfGrad(const KernelContext& ctx, const Windows& attrs);
/// The pooling of the op that has places instead of the output.
StatusOr<Pooling> PoolingOfPlacesGrad(const KernelContext& ctx, const Windows& w);
/// The pooling of MaxPoolGradGrad and MaxPool3DGradGrad, where input 2 is shaped as input 0.
StatusOr<Pooling> PoolingOfGradGrad(const KernelContext& ctx, const Windows& attrs);
/// InvalidArgument, naming `what`, unless `t` is [dims].
Status CheckDims(std::string_view what, const Tensor& t, absl::Span<const int64_t> dims);

/// The shape function of pooling: the output of windows on input 0.
Status PoolingShape(ShapeContext& c);
/// Output 0 is shaped as input 1.
Status SecondInputShape(ShapeContext& c);

/// Walks over the windows of all images, as WindowCursor does, and knows where their pixels lie.
class PooledWindow {
 public:
  PooledWindow(const Pooling& p, int64_t row)
      : p_(p), whole_end_(p.axes[2].WholeEnd()), cursor_(p.axes, row), x_(cursor_.x()) {
    Find();
  }

  void Next() {
    if (++x_ >= alike_end_) {
      cursor_.Skip(x_ - cursor_.x());
      return Find();
    }
    first_ += p_.axes[2].stride * p_.channels;
    first_in_image_ += p_.axes[2].stride * p_.channels;
  }

  /// Where the window's first pixel begins in the batch, and in its image, in elements.
  int64_t first() const { return first_; }
  int64_t first_in_image() const { return first_in_image_; }
  /// How many pixels it has; none where it lies outside the image.
  int64_t count() const { return static_cast<int64_t>(rows_.size()) * extents_[2]; }
  /// fn(its number in the image, counted from the first) for each pixel, in row-major order.
  template <typename Fn>
  ABSL_ATTRIBUTE_ALWAYS_INLINE void ForEachPixel(Fn fn) const {
    const int64_t step = p_.axes[2].dilation, width = extents_[2] * step;
    if (step == 1 && width == 3) {  // the most usual, so that there is no loop
      for (const int64_t row : rows_) {
        fn(row);
        fn(row + 1);
        fn(row + 2);
      }
      return;
    }
    for (const int64_t row : rows_) {
      for (int64_t pixel = row; pixel < row + width; pixel += step) fn(pixel);
    }
  }

 private:
  void Find() {
    const auto& [depth, height, width] = p_.axes;
    const std::array<int64_t, 3> extents = cursor_.extents();
    x_ = cursor_.x();
    alike_end_ = extents[2] == width.window ? whole_end_ : x_ + 1;
    const bool same_rows = extents[0] == extents_[0] && extents[1] == extents_[1] &&
                           (extents[2] > 0) == (extents_[2] > 0);
    extents_ = extents;
    if (!same_rows) {
      rows_.clear();
      for (int64_t z = 0; z < extents[0] && extents[2] > 0; ++z) {
        for (int64_t y = 0; y < extents[1]; ++y) {
          rows_.push_back((z * depth.dilation * height.in + y * height.dilation) * width.in);
        }
      }
    }
    first_in_image_ = rows_.empty() ? 0 : cursor_.first_pixel() * p_.channels;
    first_ = cursor_.image() * p_.image() + first_in_image_;
  }

  const Pooling& p_;
  const int64_t whole_end_;
  WindowCursor cursor_;        // at the window where it looked last
  int64_t x_, alike_end_ = 0;  // windows from x_ to there differ only in where they begin
  int64_t first_ = 0, first_in_image_ = 0;
  std::array<int64_t, 3> extents_ = {-1, -1, -1};
  CountedVector<int64_t> rows_;  // the first pixel of each
};

/// For each channel of a window: out = finish(what `start` becomes by value = step(value,
/// element)). Channels go through the window in blocks that fit in registers.
template <typename T, typename C, typename Step, typename Finish>
void ReduceWindow(const PooledWindow& window, int64_t channels, const T* images, T* out, C start,
                  Step step, Finish finish) {
  constexpr int64_t kBlock = 32;
  const T* const pixels = images + window.first();
  InBlocks<kBlock>(channels, [&](int64_t first, auto count) {
    C values[kBlock];
    for (int64_t c = 0; c < count; ++c) values[c] = start;
    window.ForEachPixel([&](int64_t pixel) {
      const T* const in = pixels + pixel * channels + first;
      for (int64_t c = 0; c < count; ++c) values[c] = step(values[c], static_cast<C>(in[c]));
    });
    for (int64_t c = 0; c < count; ++c) out[first + c] = static_cast<T>(finish(values[c]));
  });
}

/// fn(image, sums) adds to the `size` elements of each of `batch` images, which begin as zeros, in
/// the type that T is computed in; the sums become `to`.
template <typename T, typename Fn>
void SumIntoImages(int64_t batch, int64_t size, double cost, T* to, Fn fn) {
  using C = ComputeType<T>;
  ParallelFor(batch, cost, [&](int64_t begin, int64_t end) {
    CountedVector<C> buffer(std::is_same_v<T, C> ? 0 : size);
    for (int64_t i = begin; i < end; ++i) {
      T* const image = to + i * size;
      if constexpr (std::is_same_v<T, C>) {
        std::fill_n(image, size, T(0));
        fn(i, image);
      } else {
        std::fill(buffer.begin(), buffer.end(), C(0));
        fn(i, buffer.data());
        for (int64_t k = 0; k < size; ++k) image[k] = static_cast<T>(buffer[k]);
      }
    }
  });
}

}  // namespace tenon
