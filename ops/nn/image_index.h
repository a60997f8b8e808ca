// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/nn/windows.h"

// Which pixels a window has, and which windows a pixel is in, for code that takes each window or
// each pixel by itself, on any device. Pixels and windows are numbered in row-major order.

namespace tenon {

/// A place along depth, height and width.
struct Place3 {
  int64_t at[3];
};

/// Pixel `i` of an image, and window `i` on it.
TENON_HD inline Place3 PixelAt(const WindowAxes& a, int64_t i) {
  const int64_t rows = i / a[2].in;
  return {{rows / a[1].in, rows % a[1].in, i % a[2].in}};
}
TENON_HD inline Place3 WindowAt(const WindowAxes& a, int64_t i) {
  const int64_t rows = i / a[2].out;
  return {{rows / a[1].out, rows % a[1].out, i % a[2].out}};
}

/// fn(pixel, tap) for each pixel of the image that is in the window, in order: its number in the
/// image, and its number among the elements of a filter that lies there.
template <typename Fn>
TENON_HD void ForEachPixelOf(const WindowAxes& a, const Place3& window, Fn fn) {
  int64_t start[3], first[3], last[3];
  for (int d = 0; d < 3; ++d) {
    start[d] = a[d].Start(window.at[d]);
    first[d] = a[d].First(window.at[d]);
    last[d] = a[d].Last(window.at[d]);
  }
  for (int64_t i = first[0]; i < last[0]; ++i) {
    const int64_t z = start[0] + i * a[0].dilation;
    for (int64_t j = first[1]; j < last[1]; ++j) {
      const int64_t y = z * a[1].in + start[1] + j * a[1].dilation;
      for (int64_t k = first[2]; k < last[2]; ++k) {
        const int64_t x = y * a[2].in + start[2] + k * a[2].dilation;
        // The number may wrap in windows that pool: they do not use it.
        fn(x, static_cast<int64_t>((static_cast<uint64_t>(i) * a[1].window + j) * a[2].window + k));
      }
    }
  }
}

/// How many pixels of the image are in the window.
TENON_HD inline int64_t PixelsOf(const WindowAxes& a, const Place3& window) {
  int64_t pixels = 1;
  for (int d = 0; d < 3; ++d) {
    const int64_t extent = a[d].Last(window.at[d]) - a[d].First(window.at[d]);
    pixels *= extent > 0 ? extent : 0;
  }
  return pixels;
}

/// A window that a pixel is in.
struct WindowOfPixel {
  int64_t window;  // its number
  int64_t place;   // the pixel's number among those of the window that are in the image
  int64_t tap;     // that among the elements of a filter
  int64_t count;   // the pixels of the image in the window
};

/// fn(w) for each window that the pixel is in, in order.
template <typename Fn>
TENON_HD void ForEachWindowOf(const WindowAxes& a, const Place3& pixel, Fn fn) {
  ForEachWindowWith(a[0], pixel.at[0], [&](const WindowOfElement& i) {
    ForEachWindowWith(a[1], pixel.at[1], [&](const WindowOfElement& j) {
      const int64_t row = (i.window * a[1].out + j.window) * a[2].out;
      const int64_t before = i.element * j.count + j.element;
      ForEachWindowWith(a[2], pixel.at[2], [&](const WindowOfElement& k) {
        const auto tap = (static_cast<uint64_t>(i.tap) * a[1].window + j.tap) * a[2].window + k.tap;
        fn(WindowOfPixel{row + k.window, before * k.count + k.element, static_cast<int64_t>(tap),
                         i.count * j.count * k.count});
      });
    });
  });
}

}  // namespace tenon
