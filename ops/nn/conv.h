// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/kernel.h"
#include "ops/nn/windows.h"

// Convolution in one to three dimensions and its two gradients, with groups: depthwise convolution
// is that with a group for each channel.

namespace tenon {

/// All sizes of a convolution. The input is [batch, spatial..., in_channels], or with
/// channels_first [batch, in_channels, spatial...], the output accordingly, and the filter is
/// [spatial..., in_channels / groups, out_channels]. Channel c of a group's outputs sees its inputs
/// only.
struct ConvShape {
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  bool channels_first = false;
  WindowAxes axes;

  int64_t group_inputs() const { return in_channels / groups; }
  int64_t group_outputs() const { return out_channels / groups; }
  /// Elements of the filter in one channel.
  int64_t taps() const { return axes[0].window * axes[1].window * axes[2].window; }
  /// Elements of one channel of the input and of the output.
  int64_t in_pixels() const { return Pixels(axes); }
  int64_t out_pixels() const { return NumWindows(axes); }
  /// Multiplications for one image.
  double image_work() const {
    return static_cast<double>(out_pixels()) * static_cast<double>(taps()) *
           static_cast<double>(group_inputs()) * static_cast<double>(out_channels);
  }
  friend bool operator==(const ConvShape&, const ConvShape&) = default;
};

/// Which of input, filter and output is computed from the other two: the output, or the gradient of
/// one of the others.
enum class ConvPass { kOutput, kInput, kFilter };

/// What one of these is in memory; the computed one is overwritten. None is empty. The output gets
/// `bias` added, one element a channel, unless it is null.
template <typename T>
struct ConvArrays {
  T *input, *filter, *output;
  const T* bias = nullptr;
};

/// In oneDNN, which alone knows of a bias. False when that has only slow code for it, and nothing
/// is done. ResourceExhausted when memory is out. Images are taken a few at a time, so that the
/// kernel can be interrupted.
StatusOr<bool> FastConv(ConvPass pass, const ConvShape& shape, const ConvArrays<float>& arrays);

/// As a matrix product of the filter with rows of input elements, which are gathered in pieces, or
/// directly where each channel is by itself. T: float, double, int32.
template <typename T>
Status PlainConv(ConvPass pass, const ConvShape& shape, const ConvArrays<T>& arrays);

/// The convolution of an image with a filter [spatial..., inputs, outputs], which of a depthwise
/// one are [channels, multiplier]; InvalidArgument when these do not fit.
StatusOr<ConvShape> MakeConvShape(const Windows& windows, bool depthwise, const Shape& input,
                                  const Shape& filter);
/// The dimensions of its output.
DimVector OutputDims(const Windows& windows, const ConvShape& shape);

/// Any of these, by what a device has for it. The tensors are as ConvArrays's.
using ConvolveFn = Status (*)(KernelContext& ctx, ConvPass pass, const ConvShape& shape,
                              const Tensor& input, const Tensor& filter, const Tensor& output);
/// The kernels of convolutions and their gradients: check and read the arguments of the op for this
/// pass, and let `convolve` compute the output.
Status RunConvolution(KernelContext& ctx, const Windows& w, ConvPass pass, bool depthwise,
                      ConvolveFn convolve);

/// Any of these, in the dtype of the tensors: float, double, int32, and 16-bit floats, which are
/// computed in float. The arguments are those of ConvArrays.
Status Convolve(ConvPass pass, const ConvShape& shape, const Tensor& input, const Tensor& filter,
                const Tensor& output);

}  // namespace tenon
