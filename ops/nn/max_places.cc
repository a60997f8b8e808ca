// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/max_places.h"

#include <limits>

#include "core/interruption.h"

namespace tenon {
namespace {

/// Of every window and channel the number of the largest element's pixel, as FindLargest has it,
/// which a Pixel holds while it looks and a Place afterwards.
template <typename Pixel, typename Place, typename T>
void FindPlaces(const Pooling& p, const T* x, Place* places) {
  constexpr int64_t kBlock = 32;
  const int64_t n = p.channels;
  ParallelFor(p.batch * p.windows(), p.cost(), [&](int64_t begin, int64_t end) {
    PooledWindow window(p, begin);
    for (int64_t row = begin; row < end; ++row, window.Next()) {
      const T* const in = x + window.first();
      Place* const out = places + row * n;
      InBlocks<kBlock>(n, [&](int64_t first, auto count) {
        T largest[kBlock] = {};
        Pixel pixels[kBlock] = {};
        FindLargest(window, count, in + first, n, largest, pixels);
        TENON_SIMD
        for (int64_t c = 0; c < count; ++c) out[first + c] = static_cast<Place>(pixels[c]);
      });
    }
  });
}

/// A window that a pixel lies in.
struct WindowOfPixel {
  int64_t window;  // where it begins in the pooled image, in elements
  int64_t place;   // the pixel's number in it, as FindLargest counts
};

/// fn(o) for each window o along the axis in which element `i` lies.
void ForEachWindowWith(const WindowAxis& a, int64_t i, absl::FunctionRef<void(int64_t)> fn) {
  const int64_t from = i + a.before, first = from - (a.window - 1) * a.dilation;
  const int64_t last = std::min(from / a.stride, a.out - 1);
  for (int64_t o = first <= 0 ? 0 : (first - 1) / a.stride + 1; o <= last; ++o) {
    if (a.dilation == 1 || (from - o * a.stride) % a.dilation == 0) fn(o);
  }
}

/// Appends the windows in which pixel `pixel` of an image lies, in row-major order.
void AppendWindowsOf(const Pooling& p, int64_t pixel, CountedVector<WindowOfPixel>* windows) {
  const auto& [depth, height, width] = p.axes;
  const auto first = [](const WindowAxis& a, int64_t o) {
    return a.Start(o) + a.First(o) * a.dilation;
  };
  const int64_t x = pixel % width.in, rows = pixel / width.in;
  ForEachWindowWith(depth, rows / height.in, [&](int64_t i) {
    ForEachWindowWith(height, rows % height.in, [&](int64_t j) {
      const int64_t row = (i * height.out + j) * width.out;
      const int64_t at = (first(depth, i) * height.in + first(height, j)) * width.in;
      ForEachWindowWith(width, x, [&](int64_t k) {
        windows->push_back({(row + k) * p.channels, pixel - at - first(width, k)});
      });
    });
  });
}

/// Each element of dx: the sum of dy over those windows whose place is the element's.
template <typename Pixel, typename Place, typename T>
void SumOfPlaces(const Pooling& p, const T* dy, const Place* places, T* dx) {
  using C = ComputeType<T>;
  constexpr int64_t kBlock = 32;
  // So many at a time: few enough for a cache, enough to be worth finding for the whole batch.
  constexpr size_t kManyWindows = 4096;
  const int64_t n = p.channels, pooled = p.windows() * n;
  const double cost = p.cost() * static_cast<double>(p.windows() * p.batch) /
                      static_cast<double>(std::max<int64_t>(1, Pixels(p.axes)));
  ParallelFor(Pixels(p.axes), cost, [&](int64_t begin, int64_t end) {
    CountedVector<WindowOfPixel> windows;
    CountedVector<size_t> ends;  // of each pixel's windows among these
    while (begin < end && !Interrupted()) {
      windows.clear();
      ends.clear();
      const int64_t first_pixel = begin;
      for (; begin < end && windows.size() < kManyWindows; ++begin) {
        AppendWindowsOf(p, begin, &windows);
        ends.push_back(windows.size());
      }
      for (int64_t image = 0; image < p.batch; ++image) {
        const T* const from = dy + image * pooled;
        const Place* const largest = places + image * pooled;
        T* to = dx + image * p.image() + first_pixel * n;
        const WindowOfPixel* w = windows.data();
        for (const size_t pixel_end : ends) {
          const WindowOfPixel* const w_end = windows.data() + pixel_end;
          InBlocks<kBlock>(n, [&](int64_t first, auto count) {
            C sums[kBlock] = {};
            for (const WindowOfPixel* i = w; i < w_end; ++i) {
              const T* const gradient = from + i->window + first;
              const Place* const place = largest + i->window + first;
              const auto here = static_cast<Pixel>(i->place);
              TENON_SIMD
              for (int64_t c = 0; c < count; ++c) {
                const bool is_here = static_cast<Pixel>(place[c]) == here;
                sums[c] = Plus(sums[c], is_here ? static_cast<C>(gradient[c]) : C(0));
              }
            }
            for (int64_t c = 0; c < count; ++c) to[first + c] = static_cast<T>(sums[c]);
          });
          w = w_end;
          to += n;
        }
      }
    }
  });
}

}  // namespace

void MaxPoolGradient(const Pooling& p, const Tensor& x, const Tensor& dy, Tensor* dx) {
  const auto run = [&]<typename T, typename Pixel, typename Place>(T, Pixel, Place) {
    CountedVector<Place> places(dy.num_elements());
    FindPlaces<Pixel>(p, x.data<T>(), places.data());
    SumOfPlaces<Pixel>(p, dy.data<T>(), places.data(), dx->data<T>());
  };
  const auto reach = [](const WindowAxis& a) {
    return std::min((a.window - 1) * a.dilation, a.in - 1);
  };
  const auto& [depth, height, width] = p.axes;
  const int64_t last = (reach(depth) * height.in + reach(height)) * width.in + reach(width);
  // Numbers of the width of floats keep the search in vectors.
  const bool narrow = last <= std::numeric_limits<uint16_t>::max();
  Dispatch(x.dtype(), RealTypes(), [&](auto value) {
    narrow ? run(value, int32_t{}, uint16_t{}) : run(value, int64_t{}, int64_t{});
  });
}

}  // namespace tenon
