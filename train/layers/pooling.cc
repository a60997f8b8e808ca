// SPDX-License-Identifier: Apache-2.0
#include "train/layers/pooling.h"

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/nn/nn_ops.h"
#include "train/layers/layer.h"

namespace tenon {
namespace {

bool ChannelsFirst(const std::string& data_format) {
  if (data_format != "channels_first" && data_format != "channels_last") {
    CurrentBuilding().Fail(
        InvalidArgument("data_format must be channels_last or channels_first, found '", data_format,
                        "'"),
        std::source_location::current());
  }
  return data_format == "channels_first";
}

std::string ScopeOf(const std::string& given, const std::string& by_default) {
  return UnusedScope(given.empty() ? by_default : given);
}

Output Pooled(bool largest, int spatial, const Input& input, const SpatialSizes& pool_size,
              const PoolingOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  const std::string kind = largest ? "max_pooling" : "average_pooling";
  const NameScope scope(ScopeOf(options.name, StrCat(kind, spatial, "d")));
  Output x = Const(input);
  const std::vector<int64_t> windows = pool_size.For(spatial);
  const std::vector<int64_t> steps =
      (options.strides.exists() ? options.strides : pool_size).For(spatial);
  if (windows.empty() || steps.empty()) {
    context.Fail(InvalidArgument("the sizes and strides of a pooling must be one or ", spatial),
                 options.location);
  }
  const bool channels_first = ChannelsFirst(options.data_format);
  if (!CheckRank(x, spatial + 2, "a pooling") || !context.graph->error().ok()) return {};
  std::vector<int64_t> sizes(windows.size() + 2, 1), strides = sizes;
  const int first = channels_first ? 2 : 1;
  std::copy(windows.begin(), windows.end(), sizes.begin() + first);
  std::copy(steps.begin(), steps.end(), strides.begin() + first);
  if (spatial == 3) {
    const std::string format = channels_first ? "NCDHW" : "NDHWC";
    return largest ? MaxPool3D(x, sizes, strides, options.padding, {.data_format = format})
                   : AvgPool3D(x, sizes, strides, options.padding, {.data_format = format});
  }
  if (spatial == 1) {
    // An image of height 1.
    x = ExpandDims(x, first);
    sizes.insert(sizes.begin() + first, 1);
    strides.insert(strides.begin() + first, 1);
  }
  const std::string format = channels_first ? "NCHW" : "NHWC";
  const Output y = largest ? MaxPool(x, sizes, strides, options.padding, {.data_format = format})
                           : AvgPool(x, sizes, strides, options.padding, {.data_format = format});
  return spatial == 1 ? Squeeze(y, {.squeeze_dims = {first}}) : y;
}

/// The spatial dimensions of x.
std::vector<int32_t> SpatialAxes(const Output& x, const std::string& data_format) {
  const int rank = x.shape().rank();
  if (rank < 3) {
    CurrentBuilding().Fail(
        InvalidArgument("the input of a global pooling must have a known rank of 3 or more; '",
                        x.name(), "' has shape ", x.shape().ToString()),
        std::source_location::current());
  }
  std::vector<int32_t> axes;
  const int first = ChannelsFirst(data_format) ? 2 : 1;
  for (int i = 0; i < rank - 2; ++i) axes.push_back(first + i);
  return axes;
}

}  // namespace

Output MaxPooling1D(const Input& x, const SpatialSizes& pool_size, const PoolingOptions& options) {
  return Pooled(true, 1, x, pool_size, options);
}
Output MaxPooling2D(const Input& x, const SpatialSizes& pool_size, const PoolingOptions& options) {
  return Pooled(true, 2, x, pool_size, options);
}
Output MaxPooling3D(const Input& x, const SpatialSizes& pool_size, const PoolingOptions& options) {
  return Pooled(true, 3, x, pool_size, options);
}
Output AveragePooling1D(const Input& x, const SpatialSizes& pool_size,
                        const PoolingOptions& options) {
  return Pooled(false, 1, x, pool_size, options);
}
Output AveragePooling2D(const Input& x, const SpatialSizes& pool_size,
                        const PoolingOptions& options) {
  return Pooled(false, 2, x, pool_size, options);
}
Output AveragePooling3D(const Input& x, const SpatialSizes& pool_size,
                        const PoolingOptions& options) {
  return Pooled(false, 3, x, pool_size, options);
}

Output GlobalAveragePooling(const Input& input, const GlobalPoolingOptions& options) {
  const CalledFrom caller(options.location);
  const NameScope scope(ScopeOf(options.name, "global_average_pooling"));
  const Output x = Const(input);
  return Mean(x, SpatialAxes(x, options.data_format), {.keep_dims = options.keep_dims});
}

Output GlobalMaxPooling(const Input& input, const GlobalPoolingOptions& options) {
  const CalledFrom caller(options.location);
  const NameScope scope(ScopeOf(options.name, "global_max_pooling"));
  const Output x = Const(input);
  return Max(x, SpatialAxes(x, options.data_format), {.keep_dims = options.keep_dims});
}

}  // namespace tenon
