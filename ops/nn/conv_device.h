// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/nn/conv.h"
#include "ops/nn/image_index.h"

// Convolutions on the GPU: what there is to compute them with. No tensor is empty. Sums are made in
// float for 16-bit floats.

namespace tenon::cuda {

/// By cuDNN. False, and nothing is queued, when it is not there or has nothing for this
/// convolution.
StatusOr<bool> ConvolveByCudnn(KernelContext& ctx, ConvPass pass, const ConvShape& shape,
                               const Tensor& input, const Tensor& filter, const Tensor& output);

/// As a matrix product whose operands are gathered as it goes (implicit GEMM); for all floats.
Status ConvolveTiled(KernelContext& ctx, ConvPass pass, const ConvShape& shape, const Tensor& input,
                     const Tensor& filter, const Tensor& output);

/// Where each group has one input channel; for all floats.
Status ConvolveDepthwise(KernelContext& ctx, ConvPass pass, const ConvShape& shape,
                         const Tensor& input, const Tensor& filter, const Tensor& output);

/// How far apart elements of images are.
struct ImageStrides {
  ImageStrides(int64_t pixels, int64_t channels, bool channels_first)
      : image(pixels * channels),
        pixel(channels_first ? 1 : channels),
        channel(channels_first ? pixels : 1) {}
  int64_t image, pixel, channel;

  TENON_HD int64_t At(int64_t i, int64_t p, int64_t c) const {
    return i * image + p * pixel + c * channel;
  }
};

/// Which elements of input, filter and output meet in a convolution.
struct ConvIndex {
  explicit ConvIndex(const ConvShape& s)
      : axes(s.axes),
        batch(s.batch),
        in_pixels(s.in_pixels()),
        out_pixels(s.out_pixels()),
        out_channels(s.out_channels),
        inputs(s.group_inputs()),
        outputs(s.group_outputs()),
        taps(s.taps()),
        in(s.in_pixels(), s.in_channels, s.channels_first),
        out(s.out_pixels(), s.out_channels, s.channels_first) {}

  WindowAxes axes;
  int64_t batch, in_pixels, out_pixels, out_channels;
  int64_t inputs, outputs;  // channels of a group
  int64_t taps;
  ImageStrides in, out;

  TENON_HD Place3 TapAt(int64_t tap) const {
    const int64_t rows = tap / axes[2].window;
    return {{rows / axes[1].window, rows % axes[1].window, tap % axes[2].window}};
  }
  /// The pixel of the image on which the tap lies in the window; -1 when it is outside.
  TENON_HD int64_t PixelUnder(int64_t window, int64_t tap) const {
    const Place3 w = WindowAt(axes, window), t = TapAt(tap);
    int64_t pixel = 0;
    for (int d = 0; d < 3; ++d) {
      const int64_t i = axes[d].Start(w.at[d]) + t.at[d] * axes[d].dilation;
      if (i < 0 || i >= axes[d].in) return -1;
      pixel = pixel * axes[d].in + i;
    }
    return pixel;
  }
  /// The window in which the tap lies on the pixel; -1 when there is none.
  TENON_HD int64_t WindowOver(int64_t pixel, int64_t tap) const {
    const Place3 p = PixelAt(axes, pixel), t = TapAt(tap);
    int64_t window = 0;
    for (int d = 0; d < 3; ++d) {
      const int64_t from = p.at[d] + axes[d].before - t.at[d] * axes[d].dilation;
      if (from < 0 || from % axes[d].stride != 0 || from / axes[d].stride >= axes[d].out) return -1;
      window = window * axes[d].out + from / axes[d].stride;
    }
    return window;
  }
  /// Where the filter has the element of a tap, an input of the group, and an output of all.
  TENON_HD int64_t FilterAt(int64_t tap, int64_t input, int64_t output) const {
    return (tap * inputs + input) * out_channels + output;
  }
};

}  // namespace tenon::cuda
