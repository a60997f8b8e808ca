// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor.h"
#include "ops/nn/pooling.h"

// Where the largest elements of windows lie.

namespace tenon {

/// Of each of `count` channels the largest element in a window, the first of equals, and the number
/// of its pixel, counted from the first. A NaN stays where it comes first, and is passed over
/// elsewhere. `in` is the window's first pixel, `n` the channels of a pixel. Nothing when the
/// window has no pixels.
template <typename T, typename Pixel>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void FindLargest(const PooledWindow& window, auto count,
                                                     const T* in, int64_t n, T* largest,
                                                     Pixel* pixels) {
  // Inlined, or what is found lies in memory, not in registers.
  window.ForEachPixel([&](int64_t at) ABSL_ATTRIBUTE_ALWAYS_INLINE {
    const T* const elements = in + at * n;
    const auto pixel = static_cast<Pixel>(at);
    const bool first = at == 0;
    TENON_SIMD
    for (int64_t c = 0; c < count; ++c) {
      const bool larger = first | (largest[c] < elements[c]);
      largest[c] = larger ? elements[c] : largest[c];
      pixels[c] = larger ? pixel : pixels[c];
    }
  });
}

/// The gradient of max pooling: each element of `dx`, shaped as `x`, becomes the sum of `dy` over
/// those windows in which it is the largest, the first of equals. On several threads; the sums are
/// the same with any number of them.
void MaxPoolGradient(const Pooling& p, const Tensor& x, const Tensor& dy, Tensor* dx);

}  // namespace tenon
