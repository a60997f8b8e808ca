// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/build/building.h"
#include "train/layers/spatial_sizes.h"

// Pooling over windows (tf.layers.max_pooling2d and its like), and over all of an image.
//
//   h = MaxPooling2D(h, 2);                       // halves height and width
//   h = AveragePooling2D(h, 3, {.strides = 2, .padding = "SAME"});
//   Output features = GlobalAveragePooling(h);    // [batch, channels]

namespace tenon {

struct PoolingOptions {
  /// The step of the window; by default its size.
  SpatialSizes strides = {};
  /// VALID: where the window lies inside; SAME: ceil(size / stride) places.
  std::string padding = "VALID";
  /// [batch, spatial..., channels] with channels_last, [batch, channels, spatial...] with
  /// channels_first.
  std::string data_format = "channels_last";
  /// By default the function's, in TensorFlow's spelling.
  std::string name = {};
  std::source_location location = std::source_location::current();
};

/// The largest element of each window of [batch, width, channels], [batch, height, width, channels]
/// and [batch, depth, height, width, channels] (tf.layers.max_pooling1d, tf.layers.max_pooling2d,
/// tf.layers.max_pooling3d).
Output MaxPooling1D(const Input& x, const SpatialSizes& pool_size,
                    const PoolingOptions& options = {});
Output MaxPooling2D(const Input& x, const SpatialSizes& pool_size,
                    const PoolingOptions& options = {});
Output MaxPooling3D(const Input& x, const SpatialSizes& pool_size,
                    const PoolingOptions& options = {});
/// The mean of each window, of what of it lies inside (tf.layers.average_pooling1d,
/// tf.layers.average_pooling2d, tf.layers.average_pooling3d).
Output AveragePooling1D(const Input& x, const SpatialSizes& pool_size,
                        const PoolingOptions& options = {});
Output AveragePooling2D(const Input& x, const SpatialSizes& pool_size,
                        const PoolingOptions& options = {});
Output AveragePooling3D(const Input& x, const SpatialSizes& pool_size,
                        const PoolingOptions& options = {});

struct GlobalPoolingOptions {
  /// Keeps the spatial dimensions, of size 1.
  bool keep_dims = false;
  std::string data_format = "channels_last";
  std::string name = {};
  std::source_location location = std::source_location::current();
};
/// The mean, and the largest element, of each channel over all spatial dimensions, whose number
/// must be known: [batch, channels] (tf.keras.layers.GlobalAveragePooling2D,
/// tf.keras.layers.GlobalMaxPooling2D; and their like).
Output GlobalAveragePooling(const Input& x, const GlobalPoolingOptions& options = {});
Output GlobalMaxPooling(const Input& x, const GlobalPoolingOptions& options = {});

}  // namespace tenon
