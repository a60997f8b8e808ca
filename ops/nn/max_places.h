// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "core/tensor/tensor.h"
#include "ops/nn/pooling.h"

// Max pooling of arrays: the largest element of each window, where it lies, the gradient.

namespace tenon {

/// The number of a pixel in its window, where that has no more than kNarrowWindow in the image.
using NarrowPlace = uint8_t;
inline constexpr int64_t kNarrowWindow = 256;

/// How many pixels of the image a window has at most; kNarrowWindow + 1 stands for any that are
/// more.
inline int64_t LargestWindow(const Pooling& p) {
  int64_t pixels = 1;
  for (const WindowAxis& a : p.axes) {
    pixels = std::min(kNarrowWindow + 1, pixels * std::min({a.window, a.in, kNarrowWindow + 1}));
  }
  return pixels;
}

/// MakePlacePooling whose windows have numbers that fit; InvalidArgument for larger ones.
StatusOr<Pooling> NarrowPooling(const Windows& w, const Shape& input);

/// The largest element of each window. NaNs are passed over.
void MaxPool(const Pooling& p, const Tensor& x, Tensor* y);

/// The same, and which pixel of its window is the largest, the first of equals. A NaN is if it
/// comes first, and is passed over elsewhere. REQUIRES: LargestWindow(p) <= kNarrowWindow; `places`
/// has as many elements as y.
void MaxPoolWithPlaces(const Pooling& p, const Tensor& x, Tensor* y, NarrowPlace* places);

/// The gradient: each element of `dx` becomes the sum of `dy` over those windows in which it is the
/// largest, the first of equals. On several threads; the sums are the same with any number of them.
void MaxPoolGrad(const Pooling& p, const Tensor& x, const Tensor& dy, Tensor* dx);
/// The same where the places are known. Those that no window has are nowhere.
void MaxPoolGradOfPlaces(const Pooling& p, const NarrowPlace* places, const Tensor& dy, Tensor* dx);

/// MaxPoolWithPlaces of Relu of `x`, floats. Windows of 2x2 that do not overlap have their places
/// in a form of their own, which is for the gradient alone: it tells where Relu has none.
void ReluMaxPoolWithPlaces(const Pooling& p, const Tensor& x, Tensor* y, NarrowPlace* places);
/// The gradient by `x`: that of max pooling, then that of Relu, of which a gradient that does not
/// pass is multiplied by zero.
void ReluMaxPoolGradOfPlaces(const Pooling& p, const Tensor& x, const NarrowPlace* places,
                             const Tensor& dy, Tensor* dx);

}  // namespace tenon
