// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "core/gradient/gradients.h"
#include "core/op/function_kernel.h"
#include "core/op/shape_inference.h"
#include "ops/maths.h"

// How the windows of convolution and pooling lie on an image: read from a node's attributes once,
// for shape functions and kernels alike.

namespace tenon {

/// The windows along one dimension of an image.
struct WindowAxis {
  int64_t in = 1;        // elements of the image
  int64_t window = 1;    // elements of a window
  int64_t stride = 1;    // from one window to the next
  int64_t dilation = 1;  // from one element of a window to the next
  int64_t before = 0;    // elements missing before the image, and after it
  int64_t after = 0;
  int64_t out = 1;  // windows

  /// Where window `o` would begin in an image without end.
  TENON_HD int64_t Start(int64_t o) const { return o * stride - before; }
  /// The elements [First, Last) of window `o` that are in the image; none when First >= Last.
  TENON_HD int64_t First(int64_t o) const {
    const int64_t missing = -Start(o);
    return missing <= 0 ? 0 : dilation == 1 ? missing : (missing - 1) / dilation + 1;
  }
  TENON_HD int64_t Last(int64_t o) const {
    const int64_t rest = in - Start(o);
    if (rest <= 0) return 0;
    return std::min(window, dilation == 1 ? rest : (rest - 1) / dilation + 1);
  }
  /// The end of the whole windows: from one that lies in the image whole up to this, all do.
  int64_t WholeEnd() const {
    const int64_t last_start = in - 1 - (window - 1) * dilation;
    return last_start + before < 0 ? 0 : std::min(out, (last_start + before) / stride + 1);
  }

  friend bool operator==(const WindowAxis&, const WindowAxis&) = default;
};

/// A window along one axis that an element lies in.
struct WindowOfElement {
  int64_t window;   // which of the axis's
  int64_t tap;      // which element of the window
  int64_t element;  // which of those of the window that are in the image
  int64_t count;    // how many these are
};

/// fn(w) for each window along the axis in which element `i` lies, in order.
template <typename Fn>
TENON_HD void ForEachWindowWith(const WindowAxis& a, int64_t i, Fn fn) {
  const int64_t from = i + a.before, first = from - (a.window - 1) * a.dilation;
  const int64_t last = std::min(from / a.stride, a.out - 1);
  for (int64_t o = first <= 0 ? 0 : (first - 1) / a.stride + 1; o <= last; ++o) {
    const int64_t before = a.First(o);
    const int64_t offset = from - o * a.stride;
    if (a.dilation == 1 || offset % a.dilation == 0) {
      const int64_t tap = a.dilation == 1 ? offset : offset / a.dilation;
      fn(WindowOfElement{o, tap, tap - before, a.Last(o) - before});
    }
  }
}

/// Depth, height and width. What has less has a single window on a single element in the first.
using WindowAxes = std::array<WindowAxis, 3>;

/// The elements of one channel of an image, and its windows.
TENON_HD inline int64_t Pixels(const WindowAxes& a) { return a[0].in * a[1].in * a[2].in; }
TENON_HD inline int64_t NumWindows(const WindowAxes& a) { return a[0].out * a[1].out * a[2].out; }

/// Walks over the windows of all images in row-major order.
class WindowCursor {
 public:
  /// At window `row` of all: image row / NumWindows(axes), window row % NumWindows(axes). There
  /// must be such a window.
  WindowCursor(const WindowAxes& axes, int64_t row) : axes_(axes) {
    for (int i = 2; i >= 0; row /= axes[i].out, --i) Move(i, row % axes[i].out);
    image_ = row;
  }

  void Next() { Skip(1); }
  /// Goes on by `count` windows, which must not be more than are left in the row along the width.
  void Skip(int64_t count) {
    for (int i = 2; i >= 0; --i, count = 1) {
      if (at_[i] + count < axes_[i].out) return Move(i, at_[i] + count);
      Move(i, 0);
    }
    ++image_;
  }

  int64_t image() const { return image_; }
  /// The window's number along the width.
  int64_t x() const { return at_[2]; }
  /// How many elements of the window are in the image along each dimension.
  std::array<int64_t, 3> extents() const {
    std::array<int64_t, 3> extents;
    for (int i = 0; i < 3; ++i) extents[i] = std::max<int64_t>(0, last_[i] - first_[i]);
    return extents;
  }
  /// The first pixel of the image that is in the window. There must be one.
  int64_t first_pixel() const {
    int64_t pixel = 0;
    for (int i = 0; i < 3; ++i) {
      pixel = pixel * axes_[i].in + start_[i] + first_[i] * axes_[i].dilation;
    }
    return pixel;
  }

  /// Calls fn(which element of the window, which pixel of the image) for those, in row-major order.
  template <typename Fn>
  void ForEachPixel(Fn fn) const {
    const auto& [depth, height, width] = axes_;
    // Every element of a filter has a number; windows that pool may be larger, and theirs wraps.
    const auto high = static_cast<uint64_t>(height.window);
    const auto wide = static_cast<uint64_t>(width.window);
    for (int64_t i = first_[0]; i < last_[0]; ++i) {
      const int64_t z = start_[0] + i * depth.dilation;
      for (int64_t j = first_[1]; j < last_[1]; ++j) {
        const int64_t y = z * height.in + start_[1] + j * height.dilation;
        const uint64_t row = static_cast<uint64_t>(i) * high + static_cast<uint64_t>(j);
        for (int64_t k = first_[2]; k < last_[2]; ++k) {
          const int64_t x = y * width.in + start_[2] + k * width.dilation;
          fn(static_cast<int64_t>(row * wide + static_cast<uint64_t>(k)), x);
        }
      }
    }
  }

 private:
  void Move(int i, int64_t to) {
    at_[i] = to;
    start_[i] = axes_[i].Start(to);
    first_[i] = axes_[i].First(to);
    last_[i] = axes_[i].Last(to);
  }

  const WindowAxes& axes_;
  int64_t image_;
  int64_t at_[3], start_[3], first_[3], last_[3];
};

/// The attributes strides, padding, explicit_paddings, data_format, dilations (or rates) and ksize,
/// as far as the op has them. Lists have an entry for each dimension of the image.
struct Windows : KernelState {
  explicit Windows(KernelConstruction& c);
  /// InvalidArgument where attributes contradict each other.
  static StatusOr<Windows> Create(const AttributeMap& attrs);
  /// With the sizes and strides that inputs 1 and 2 of MaxPoolV2 and its gradients give.
  StatusOr<Windows> With(const Tensor& new_ksize, const Tensor& new_strides) const;

  /// Unimplemented where windows lie along the batch, or are not at every image. Kernels are not
  /// made for such, but a graph may hold them.
  Status CheckBatch() const;

  int num_spatial() const { return rank - 2; }
  int channel_axis() const { return channels_first ? 1 : rank - 1; }
  int spatial_axis(int i) const { return i + (channels_first ? 2 : 1); }

  /// The windows of `window` elements along dimension `axis` of the image, which has `in` elements.
  /// When one of these is unknown, so is .out. InvalidArgument when none could be there.
  StatusOr<WindowAxis> Axis(int axis, int64_t in, int64_t window) const;
  /// The windows along the spatial dimensions of an image [rank], where `sizes` are the windows'
  /// sizes [num_spatial].
  StatusOr<WindowAxes> Axes(const Shape& image, absl::Span<const int64_t> sizes) const;
  /// The shape with a place for each window of an image [rank], of `channels` channels.
  StatusOr<PartialShape> Output(const PartialShape& image, absl::Span<const int64_t> sizes,
                                int64_t channels) const;

  int rank = 4;
  bool channels_first = false;
  bool pools = false;     // whether the op has a ksize
  bool extracts = false;  // whether it has ksizes, as what takes patches out of images
  std::string padding;
  DimVector ksize, strides, dilations, explicit_paddings;

 private:
  Windows() = default;
  Status Check() const;
};

/// A node of kind `op` with those attributes of g's node that say how windows lie; its output.
Output WithWindowsOf(const GradContext& g, std::string_view op,
                     std::initializer_list<Input> inputs);

}  // namespace tenon
