// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/shape_inference.h"
#include "core/tensor/tensor.h"
#include "ops/maths.h"

// What the ops that resize images share.

namespace tenon {

using ImageTypes = decltype(ConcatTypes(
    FloatTypes(), TypeList<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>()));

/// Pixels of the old row or column to one of the new one.
inline float ResizeFactor(int64_t from, int64_t to, bool align_corners) {
  return align_corners && from > 1 && to > 1
             ? static_cast<float>(from - 1) / static_cast<float>(to - 1)
             : static_cast<float>(from) / static_cast<float>(to);
}

/// InvalidArgument unless `t` is [batch, height, width, channels], which has pixels if it is no
/// gradient.
Status CheckImages(const Tensor& t, std::string_view what, bool gradient = false);
/// The same of the gradient of resized images and of what was resized, and of both attributes.
Status CheckResizeGradient(const Tensor& dy, const Tensor& image, bool align, bool half);
/// The new height and width; also checks the attributes align_corners and half_pixel_centers.
StatusOr<DimVector> ReadResize(const Tensor& t, bool align, bool half);

}  // namespace tenon
