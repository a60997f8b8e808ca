// SPDX-License-Identifier: Apache-2.0
#include "train/layers/convolution.h"

#include <algorithm>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"

namespace tenon {

/// What a call works with: per spatial dimension, except for the channels.
struct ConvolutionLayer::Sizes {
  std::vector<int64_t> kernel, strides, dilations;
  bool channels_first = false;
  int64_t channels = 0;

  /// As the ops want them: 1 for batch and channels.
  std::vector<int64_t> ForOp(const std::vector<int64_t>& spatial) const {
    std::vector<int64_t> all(spatial.size() + 2, 1);
    std::copy(spatial.begin(), spatial.end(), all.begin() + (channels_first ? 2 : 1));
    return all;
  }
};

ConvolutionLayer::ConvolutionLayer(Kind kind, int spatial, int64_t filters,
                                   const SpatialSizes& kernel_size, int64_t depth_multiplier,
                                   const ConvolutionOptions& options, std::string_view name)
    : kind_(kind),
      spatial_(spatial),
      filters_(filters),
      kernel_size_(kernel_size),
      depth_multiplier_(depth_multiplier),
      options_(options),
      state_(std::make_shared<State>(options.name.empty() ? std::string(name) : options.name)) {}

Output ConvolutionLayer::operator()(const Input& input) const {
  const InLayer layer(*state_, input.location());
  const Output x = Const(input);
  Sizes sizes;
  if (!FindSizes(x, &sizes)) return {};
  if (layer.is_first()) MakeWeights(x, sizes);
  if (!CurrentBuilding().graph->error().ok()) return {};
  Output y = kind_ == Kind::kTransposed ? Transposed(x, sizes) : Convolve(x, sizes);
  if (options_.use_bias) {
    y = BiasAdd(y, state_->bias, {.data_format = sizes.channels_first ? "NCHW" : "NHWC"});
  }
  return options_.activation(y);
}

bool ConvolutionLayer::FindSizes(const Output& x, Sizes* sizes) const {
  const BuildContext& context = CurrentBuilding();
  if (!CheckRank(x, spatial_ + 2, "a convolution")) return false;
  sizes->kernel = kernel_size_.For(spatial_);
  sizes->strides = options_.strides.For(spatial_);
  sizes->dilations = options_.dilation_rate.For(spatial_);
  sizes->channels_first = options_.data_format == "channels_first";
  const auto dilates = [](int64_t rate) { return rate != 1; };
  Status mistake;
  if (sizes->kernel.empty() || sizes->strides.empty() || sizes->dilations.empty()) {
    mistake = InvalidArgument("the sizes, strides and dilations of a convolution must be one or ",
                              spatial_);
  } else if (!sizes->channels_first && options_.data_format != "channels_last") {
    mistake = InvalidArgument("data_format must be channels_last or channels_first, found '",
                              options_.data_format, "'");
  } else if (kind_ == Kind::kTransposed &&
             std::any_of(sizes->dilations.begin(), sizes->dilations.end(), dilates)) {
    mistake = InvalidArgument("a transposed convolution cannot have dilations");
  }
  if (!mistake.ok()) context.Fail(mistake, std::source_location::current());
  sizes->channels = KnownSize(x, sizes->channels_first ? 1 : -1, "a convolution");
  return context.graph->error().ok();
}

void ConvolutionLayer::MakeWeights(const Output& x, const Sizes& sizes) const {
  const bool by_channel = kind_ == Kind::kDepthwise || kind_ == Kind::kSeparable;
  const int64_t filters = kind_ == Kind::kDepthwise ? sizes.channels * depth_multiplier_ : filters_;
  const WeightOptions kernel{options_.kernel_initializer, options_.kernel_regularizer,
                             options_.trainable};
  std::vector<int64_t> shape = sizes.kernel;
  if (by_channel) {
    shape.insert(shape.end(), {sizes.channels, depth_multiplier_});
  } else if (kind_ == Kind::kTransposed) {
    shape.insert(shape.end(), {filters, sizes.channels});
  } else {
    shape.insert(shape.end(), {sizes.channels, filters});
  }
  state_->kernel = MakeWeight(by_channel ? "depthwise_kernel" : "kernel", shape, x.dtype(), kernel);
  if (kind_ == Kind::kSeparable) {
    state_->pointwise = MakeWeight(
        "pointwise_kernel", {1, 1, sizes.channels * depth_multiplier_, filters}, x.dtype(), kernel);
  }
  if (!options_.use_bias) return;
  state_->bias =
      MakeWeight("bias", {filters}, x.dtype(),
                 {options_.bias_initializer, options_.bias_regularizer, options_.trainable});
}

Output ConvolutionLayer::Convolve(const Output& x, const Sizes& sizes) const {
  const std::string format = spatial_ == 3 ? (sizes.channels_first ? "NCDHW" : "NDHWC")
                                           : (sizes.channels_first ? "NCHW" : "NHWC");
  const std::vector<int64_t> strides = sizes.ForOp(sizes.strides);
  const std::vector<int64_t> dilations = sizes.ForOp(sizes.dilations);
  if (spatial_ == 3) {
    return Conv3D(x, state_->kernel, strides, options_.padding,
                  {.data_format = format, .dilations = dilations});
  }
  if (spatial_ == 1) {
    // An image of height 1.
    const int height = sizes.channels_first ? 2 : 1;
    std::vector<int64_t> steps = strides, rates = dilations;
    steps.insert(steps.begin() + height, 1);
    rates.insert(rates.begin() + height, 1);
    const Output y = Conv2D(ExpandDims(x, height), ExpandDims(state_->kernel, 0), steps,
                            options_.padding, {.data_format = format, .dilations = rates});
    return Squeeze(y, {.squeeze_dims = {height}});
  }
  if (kind_ == Kind::kPlain) {
    return Conv2D(x, state_->kernel, strides, options_.padding,
                  {.data_format = format, .dilations = dilations});
  }
  const Output y = DepthwiseConv2dNative(x, state_->kernel, strides, options_.padding,
                                         {.data_format = format, .dilations = dilations});
  if (kind_ == Kind::kDepthwise) return y;
  return Conv2D(y, state_->pointwise, {1, 1, 1, 1}, "VALID", {.data_format = format});
}

Output ConvolutionLayer::Transposed(const Output& x, const Sizes& sizes) const {
  // The shape of the input of the convolution whose output x is.
  std::vector<int64_t> known;
  std::vector<Input> parts;
  const Output dims = ShapeOf(x);
  const int first = sizes.channels_first ? 2 : 1;
  for (int i = 0; i < 4; ++i) {
    const int s = i - first;
    if (i == (sizes.channels_first ? 1 : 3)) {
      known.push_back(filters_);
      parts.emplace_back(filters_);
      continue;
    }
    const bool is_batch = i == 0;
    const int64_t step = is_batch ? 1 : sizes.strides[s];
    const int64_t more =
        is_batch || options_.padding == "SAME" ? 0 : std::max<int64_t>(sizes.kernel[s] - step, 0);
    const int64_t size = x.shape().dim(i);
    known.push_back(size < 0 ? -1 : size * step + more);
    if (known.back() >= 0) {
      parts.emplace_back(known.back());
    } else {
      parts.emplace_back(dims[i] * step + more);
    }
  }
  const Output y = Conv2DBackpropInput(Pack(parts), state_->kernel, x, sizes.ForOp(sizes.strides),
                                       options_.padding,
                                       {.data_format = sizes.channels_first ? "NCHW" : "NHWC"});
  return EnsureShape(y, PartialShape(known));
}

}  // namespace tenon
