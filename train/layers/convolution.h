// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "train/layers/activation.h"
#include "train/layers/layer.h"
#include "train/layers/spatial_sizes.h"

// Layers that convolve, as tf.layers has them under these names: Convolution2D is tf.layers.Conv2D.
// Their variables are made at the first call, of the dtype of its input, and shared by later calls
// and by copies.
//
//   Output h = Convolution2D(32, 3, {.padding = "SAME", .activation = Relu})(images);
//   h = Convolution2D(64, {5, 3}, {.strides = 2})(h);

namespace tenon {

struct ConvolutionOptions {
  /// The step of the window. Steps other than 1 exclude dilations other than 1.
  SpatialSizes strides = 1;
  /// VALID: where the window lies inside; SAME: ceil(size / stride) places.
  std::string padding = "VALID";
  /// [batch, spatial..., channels] with channels_last, [batch, channels, spatial...] with
  /// channels_first.
  std::string data_format = "channels_last";
  /// How far apart elements under the window lie.
  SpatialSizes dilation_rate = 1;
  Activation activation = {};
  bool use_bias = true;
  /// Glorot's uniform one by default; for both kernels of a separable convolution.
  Initializer kernel_initializer = {};
  Initializer bias_initializer = ZerosInitializer();
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  bool trainable = true;
  /// By default that of the class.
  std::string name = {};
};

/// What the layers below have in common.
class ConvolutionLayer {
 public:
  /// x: floating point, of rank spatial + 2, its number of channels known; gives the same with
  /// `filters` channels.
  Output operator()(const Input& x) const;

  /// Without value before the first call, and a bias that is not used.
  const Variable& kernel() const { return state_->kernel; }
  const Variable& bias() const { return state_->bias; }

 protected:
  enum class Kind { kPlain, kTransposed, kDepthwise, kSeparable };
  ConvolutionLayer(Kind kind, int spatial, int64_t filters, const SpatialSizes& kernel_size,
                   int64_t depth_multiplier, const ConvolutionOptions& options,
                   std::string_view name);

  /// The second kernel of a separable convolution.
  const Variable& pointwise() const { return state_->pointwise; }

 private:
  struct State : LayerState {
    using LayerState::LayerState;
    Variable kernel, pointwise, bias;
  };
  struct Sizes;

  bool FindSizes(const Output& x, Sizes* sizes) const;
  void MakeWeights(const Output& x, const Sizes& sizes) const;
  Output Convolve(const Output& x, const Sizes& sizes) const;
  Output Transposed(const Output& x, const Sizes& sizes) const;

  Kind kind_;
  int spatial_;
  int64_t filters_;
  SpatialSizes kernel_size_;
  int64_t depth_multiplier_;
  ConvolutionOptions options_;
  std::shared_ptr<State> state_;
};

/// Over [batch, width, channels]; conv1d/kernel [size, channels, filters] and bias
/// (tf.layers.Conv1D).
class Convolution1D : public ConvolutionLayer {
 public:
  Convolution1D(int64_t filters, const SpatialSizes& kernel_size,
                const ConvolutionOptions& options = {})
      : ConvolutionLayer(Kind::kPlain, 1, filters, kernel_size, 1, options, "conv1d") {}
};

/// Over [batch, height, width, channels]; conv2d/kernel [height, width, channels, filters]
/// and bias (tf.layers.Conv2D).
class Convolution2D : public ConvolutionLayer {
 public:
  Convolution2D(int64_t filters, const SpatialSizes& kernel_size,
                const ConvolutionOptions& options = {})
      : ConvolutionLayer(Kind::kPlain, 2, filters, kernel_size, 1, options, "conv2d") {}
};

/// Over [batch, depth, height, width, channels]; conv3d/kernel [depth, height, width, channels,
/// filters] and bias (tf.layers.Conv3D).
class Convolution3D : public ConvolutionLayer {
 public:
  Convolution3D(int64_t filters, const SpatialSizes& kernel_size,
                const ConvolutionOptions& options = {})
      : ConvolutionLayer(Kind::kPlain, 3, filters, kernel_size, 1, options, "conv3d") {}
};

/// The transpose of Convolution2D: from its output to an input of it, of size * stride with SAME
/// padding, of size * stride + max(kernel size - stride, 0) with VALID; conv2d_transpose/kernel
/// [height, width, filters, channels] and bias (tf.layers.Conv2DTranspose). Dilations are not
/// supported.
class Convolution2DTranspose : public ConvolutionLayer {
 public:
  Convolution2DTranspose(int64_t filters, const SpatialSizes& kernel_size,
                         const ConvolutionOptions& options = {})
      : ConvolutionLayer(Kind::kTransposed, 2, filters, kernel_size, 1, options,
                         "conv2d_transpose") {}
};

/// Every channel by itself, which gives channels * depth_multiplier of them;
/// depthwise_conv2d/depthwise_kernel [height, width, channels, depth_multiplier]
/// and bias (tf.keras.layers.DepthwiseConv2D).
class DepthwiseConvolution2D : public ConvolutionLayer {
 public:
  explicit DepthwiseConvolution2D(const SpatialSizes& kernel_size, int64_t depth_multiplier = 1,
                                  const ConvolutionOptions& options = {})
      : ConvolutionLayer(Kind::kDepthwise, 2, 0, kernel_size, depth_multiplier, options,
                         "depthwise_conv2d") {}
};

/// DepthwiseConvolution2D, then one of 1 x 1 over all channels; separable_conv2d/depthwise_kernel,
/// pointwise_kernel [1, 1, channels * depth_multiplier, filters] and bias
/// (tf.layers.SeparableConv2D).
class SeparableConvolution2D : public ConvolutionLayer {
 public:
  SeparableConvolution2D(int64_t filters, const SpatialSizes& kernel_size,
                         int64_t depth_multiplier = 1, const ConvolutionOptions& options = {})
      : ConvolutionLayer(Kind::kSeparable, 2, filters, kernel_size, depth_multiplier, options,
                         "separable_conv2d") {}
  using ConvolutionLayer::pointwise;
};

}  // namespace tenon
