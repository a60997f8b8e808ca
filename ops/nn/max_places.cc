// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/max_places.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "core/base/interruption.h"

namespace tenon {
namespace {

/// Windows of four pixels, each pixel in one of them: what most networks have, 2x2 with strides of
/// two.
constexpr int kTile = 4;
using Tile = std::array<int64_t, kTile>;

/// Where the pixels of such windows lie, counted from the first in elements; nothing for others.
std::optional<Tile> TileOf(const Pooling& p) {
  for (const WindowAxis& a : p.axes) {
    if (a.before != 0 || a.stride != a.window || a.in != a.out * a.window) return std::nullopt;
    if (a.dilation != 1 && a.window != 1) return std::nullopt;
  }
  const auto& [depth, height, width] = p.axes;
  if (depth.window > kTile || height.window > kTile || width.window > kTile) return std::nullopt;
  if (depth.window * height.window * width.window != kTile) return std::nullopt;
  Tile tile;
  for (int i = 0; i < kTile; ++i) {
    const int64_t x = i % width.window, rows = i / width.window;
    const int64_t y = rows % height.window, z = rows / height.window;
    tile[i] = ((z * height.in + y) * width.in + x) * p.channels;
  }
  return tile;
}

/// The elements of a tile's pixels, channel by channel. By value, so that the compiler knows that
/// nothing which is written changes them.
template <typename T>
using TilePixels = std::array<T*, kTile>;

/// fn(count, window, pixels): `count` channels of a window, which begin at element `window` of the
/// pooled images, and at `pixels` of the images.
template <typename T, typename Fn>
void ForEachTile(const Pooling& p, const Tile& tile, T* images, Fn fn) {
  constexpr int64_t kBlock = 32;
  const auto& [depth, height, width] = p.axes;
  const int64_t n = p.channels, layer = height.in * width.in * n;
  const double cost = p.cost() * static_cast<double>(width.out);
  ParallelFor(p.batch * depth.out * height.out, cost, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t layers = row / height.out * depth.window, y = row % height.out * height.window;
      int64_t window = row * width.out * n;
      T* pixel = images + layers * layer + y * width.in * n;
      for (int64_t o = 0; o < width.out; ++o, window += n, pixel += width.window * n) {
        InBlocks<kBlock>(n, [&](int64_t first, auto count) {
          TilePixels<T> pixels;
          for (int i = 0; i < kTile; ++i) pixels[i] = pixel + tile[i] + first;
          fn(count, window + first, pixels);
        });
      }
    }
  });
}

/// Which pixel has the largest element of channel c, as MaxPoolWithPlaces has it.
template <typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline int32_t LargestOfTile(TilePixels<const T> in, int64_t c) {
  T largest = in[0][c];
  int32_t which = 0;
  for (int i = 1; i < kTile; ++i) {
    const T element = in[i][c];
    const bool larger = largest < element;
    largest = larger ? element : largest;
    which = larger ? i : which;
  }
  return which;
}

template <typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline T MaximumOfTile(TilePixels<const T> in, int64_t c) {
  T largest = std::numeric_limits<T>::lowest();
  for (int i = 0; i < kTile; ++i) {
    const T element = in[i][c];
    largest = largest < element ? element : largest;
  }
  return largest;
}

template <typename T>
void MaxPoolTiles(const Pooling& p, const Tile& tile, const T* x, T* y) {
  ForEachTile(p, tile, x, [=](auto count, int64_t window, TilePixels<const T> in) {
    TENON_SIMD
    for (int64_t c = 0; c < count; ++c) y[window + c] = MaximumOfTile<T>(in, c);
  });
}

template <typename T>
void MaxPoolTilesWithPlaces(const Pooling& p, const Tile& tile, const T* x, T* y,
                            NarrowPlace* places) {
  ForEachTile(p, tile, x, [=](auto count, int64_t window, TilePixels<const T> in) {
    // Pointers of their own: bytes that are written may be part of anything else.
    T* const maxima = y + window;
    NarrowPlace* const which = places + window;
    TENON_SIMD
    for (int64_t c = 0; c < count; ++c) {
      maxima[c] = MaximumOfTile<T>(in, c);
      which[c] = static_cast<NarrowPlace>(LargestOfTile<T>(in, c));
    }
  });
}

template <typename T>
void MaxPoolGradOfTiles(const Pooling& p, const Tile& tile, const T* x, const T* dy, T* dx) {
  ForEachTile(p, tile, dx, [=](auto count, int64_t window, TilePixels<T> out) {
    TilePixels<const T> in;
    for (int i = 0; i < kTile; ++i) in[i] = x + (out[i] - dx);
    TENON_SIMD
    for (int64_t c = 0; c < count; ++c) {
      const T gradient = dy[window + c];
      const int32_t which = LargestOfTile<T>(in, c);
      for (int i = 0; i < kTile; ++i) out[i][c] = which == i ? gradient : T(0);
    }
  });
}

template <typename T>
void SpreadOverTiles(const Pooling& p, const Tile& tile, const NarrowPlace* places, const T* dy,
                     T* dx) {
  ForEachTile(p, tile, dx, [=](auto count, int64_t window, TilePixels<T> out) {
    TENON_SIMD
    for (int64_t c = 0; c < count; ++c) {
      const T gradient = dy[window + c];
      const int32_t which = places[window + c];
      for (int i = 0; i < kTile; ++i) out[i][c] = which == i ? gradient : T(0);
    }
  });
}

// --- Of Relu ---

/// In a place of a tile: the element there is not positive.
constexpr int32_t kNotPositive = 128;

inline float ReluOf(float x) { return x < 0 ? 0 : x; }

void ReluMaxPoolTiles(const Pooling& p, const Tile& tile, const float* x, float* y,
                      NarrowPlace* places) {
  ForEachTile(p, tile, x, [=](auto count, int64_t window, TilePixels<const float> in) {
    float* const maxima = y + window;
    NarrowPlace* const to = places + window;
    TENON_SIMD
    for (int64_t c = 0; c < count; ++c) {
      // The two are as MaximumOfTile and LargestOfTile have them, which take NaNs differently.
      float maximum = std::numeric_limits<float>::lowest(), largest = ReluOf(in[0][c]);
      int32_t which = 0;
      for (int i = 0; i < kTile; ++i) {
        const float element = ReluOf(in[i][c]);
        maximum = maximum < element ? element : maximum;
        const bool larger = largest < element;
        largest = larger ? element : largest;
        which = larger ? i : which;
      }
      maxima[c] = maximum;
      to[c] = static_cast<NarrowPlace>(largest > 0 ? which : which + kNotPositive);
    }
  });
}

void ReluSpreadOverTiles(const Pooling& p, const Tile& tile, const NarrowPlace* places,
                         const float* dy, float* dx) {
  ForEachTile(p, tile, dx, [=](auto count, int64_t window, TilePixels<float> out) {
    TENON_SIMD
    for (int64_t c = 0; c < count; ++c) {
      const int32_t place = places[window + c];
      const bool passes = place < kNotPositive;
      const float gradient = passes ? dy[window + c] : 0 * dy[window + c];
      const int32_t which = passes ? place : place - kNotPositive;
      for (int i = 0; i < kTile; ++i) out[i][c] = which == i ? gradient : 0;
    }
  });
}

/// What a place is held in while it is looked for: numbers of the width of floats stay in vectors.
template <typename Place>
using WidePlaceOf = std::conditional_t<std::is_same_v<Place, NarrowPlace>, int32_t, Place>;

template <typename T>
void MaxPoolWindow(const PooledWindow& window, int64_t channels, const T* x, T* y) {
  using C = ComputeType<T>;
  ReduceWindow(
      window, channels, x, y, std::numeric_limits<C>::lowest(),
      [](C a, C b) { return a < b ? b : a; }, [](C largest) { return largest; });
}

/// The numbers of the largest elements in their windows into `places`, and the elements into `y`
/// unless it is null.
template <typename T, typename Place>
void FindPlaces(const Pooling& p, const T* x, T* y, Place* places) {
  using C = ComputeType<T>;
  constexpr int64_t kBlock = 32;
  const int64_t n = p.channels;
  ParallelFor(p.batch * p.windows(), p.cost(), [&](int64_t begin, int64_t end) {
    PooledWindow window(p, begin);
    for (int64_t row = begin; row < end; ++row, window.Next()) {
      bool has_maxima = window.count() > 0;
      InBlocks<kBlock>(n, [&](int64_t first, auto count) {
        const T* const in = x + window.first() + first;
        T largest[kBlock] = {};
        WidePlaceOf<Place> found[kBlock] = {}, number = 0;
        if (window.count() > 0) std::copy_n(in, count, largest);
        window.ForEachPixel([&](int64_t pixel) ABSL_ATTRIBUTE_ALWAYS_INLINE {
          const T* const elements = in + pixel * n;
          TENON_SIMD
          for (int64_t c = 0; c < count; ++c) {
            const T element = elements[c], before = largest[c];
            const bool larger = before < element;
            largest[c] = larger ? element : before;
            found[c] = larger ? number : found[c];
          }
          ++number;
        });
        Place* const to = places + row * n + first;
        TENON_SIMD
        for (int64_t c = 0; c < count; ++c) to[c] = static_cast<Place>(found[c]);
        if (y == nullptr) return;
        T* const maxima = y + row * n + first;
        int32_t others = 0;
#pragma omp simd reduction(+ : others)
        for (int64_t c = 0; c < count; ++c) {
          maxima[c] = largest[c];
          others += !(static_cast<C>(largest[c]) >= std::numeric_limits<C>::lowest());
        }
        has_maxima &= others == 0;
      });
      // NaN and infinity are not what max pooling gives, though they have a place.
      if (y != nullptr && !has_maxima) MaxPoolWindow(window, n, x, y + row * n);
    }
  });
}

/// A window that a pixel lies in.
struct PooledPlace {
  int64_t window;  // where it begins in the pooled image, in elements
  int64_t place;   // the pixel's number in it
};

/// The windows in which the pixels of an image lie, pixel by pixel.
class WindowsOfPixels {
 public:
  /// Begins with pixel `pixel`, of which there must be one.
  WindowsOfPixels(const Pooling& p, int64_t pixel)
      : p_(p), row_(pixel / p.axes[2].in), x_(pixel % p.axes[2].in) {
    FindRow();
  }

  /// Appends the windows of the next pixel, in row-major order.
  void AppendNext(CountedVector<PooledPlace>* windows) {
    const WindowAxis& width = p_.axes[2];
    if (x_ == width.in) {
      x_ = 0;
      ++row_;
      FindRow();
    }
    along_width_.clear();
    ForEachWindowWith(width, x_++, [&](WindowOfElement k) { along_width_.push_back(k); });
    for (const RowOfWindows& row : rows_) {
      for (const WindowOfElement& k : along_width_) {
        windows->push_back(
            {(row.first + k.window) * p_.channels, row.before * k.count + k.element});
      }
    }
  }

 private:
  struct RowOfWindows {
    int64_t first;   // of its windows
    int64_t before;  // rows of pixels that a window has before this one
  };
  void FindRow() {
    const auto& [depth, height, width] = p_.axes;
    rows_.clear();
    ForEachWindowWith(depth, row_ / height.in, [&](WindowOfElement i) {
      ForEachWindowWith(height, row_ % height.in, [&](WindowOfElement j) {
        const int64_t first = (i.window * height.out + j.window) * width.out;
        rows_.push_back({first, i.element * j.count + j.element});
      });
    });
  }

  const Pooling& p_;
  int64_t row_, x_;  // of the next pixel
  CountedVector<RowOfWindows> rows_;
  CountedVector<WindowOfElement> along_width_;
};

/// Each element of dx: the sum of dy over those windows whose place is the element's.
template <typename Place, typename T>
void SumOfPlaces(const Pooling& p, const T* dy, const Place* places, T* dx) {
  using C = ComputeType<T>;
  constexpr int64_t kBlock = 32;
  // So many at a time: few enough for a cache, enough to be worth finding for the whole batch.
  constexpr size_t kManyWindows = 4096;
  const int64_t n = p.channels, pooled = p.windows() * n;
  const double cost = p.cost() * static_cast<double>(p.windows() * p.batch) /
                      static_cast<double>(std::max<int64_t>(1, Pixels(p.axes)));
  ParallelFor(Pixels(p.axes), cost, [&](int64_t begin, int64_t end) {
    CountedVector<PooledPlace> windows;
    CountedVector<size_t> ends;  // of each pixel's windows among these
    WindowsOfPixels finder(p, begin);
    while (begin < end && !Interrupted()) {
      windows.clear();
      ends.clear();
      const int64_t first_pixel = begin;
      for (; begin < end && windows.size() < kManyWindows; ++begin) {
        finder.AppendNext(&windows);
        ends.push_back(windows.size());
      }
      for (int64_t image = 0; image < p.batch; ++image) {
        const T* const from = dy + image * pooled;
        const Place* const largest = places + image * pooled;
        T* to = dx + image * p.image() + first_pixel * n;
        const PooledPlace* w = windows.data();
        for (const size_t pixel_end : ends) {
          const PooledPlace* const w_end = windows.data() + pixel_end;
          InBlocks<kBlock>(n, [&](int64_t first, auto count) {
            C sums[kBlock] = {};
            for (const PooledPlace* i = w; i < w_end; ++i) {
              const T* const gradient = from + i->window + first;
              const Place* const place = largest + i->window + first;
              const auto here = static_cast<WidePlaceOf<Place>>(i->place);
              TENON_SIMD
              for (int64_t c = 0; c < count; ++c) {
                const bool is_here = static_cast<WidePlaceOf<Place>>(place[c]) == here;
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

StatusOr<Pooling> NarrowPooling(const Windows& w, const Shape& input) {
  TENON_ASSIGN_OR_RETURN(const Pooling p, MakePlacePooling(w, input));
  if (LargestWindow(p) <= kNarrowWindow) return p;
  return InvalidArgument("windows have more than ", kNarrowWindow, " pixels: ksize is [",
                         Join(w.ksize, ","), "]");
}

void MaxPool(const Pooling& p, const Tensor& x, Tensor* y) {
  if (const auto tile = TileOf(p); tile && x.dtype() == DType::kFloat) {
    return MaxPoolTiles(p, *tile, x.data<float>(), y->data<float>());
  }
  Dispatch(x.dtype(), RealTypes(), [&]<typename T>(T) {
    ParallelFor(p.batch * p.windows(), p.cost(), [&](int64_t begin, int64_t end) {
      PooledWindow window(p, begin);
      for (int64_t row = begin; row < end; ++row, window.Next()) {
        MaxPoolWindow(window, p.channels, x.data<T>(), y->data<T>() + row * p.channels);
      }
    });
  });
}

void MaxPoolWithPlaces(const Pooling& p, const Tensor& x, Tensor* y, NarrowPlace* places) {
  if (const auto tile = TileOf(p); tile && x.dtype() == DType::kFloat) {
    return MaxPoolTilesWithPlaces(p, *tile, x.data<float>(), y->data<float>(), places);
  }
  Dispatch(x.dtype(), RealTypes(),
           [&]<typename T>(T) { FindPlaces(p, x.data<T>(), y->data<T>(), places); });
}

void MaxPoolGradOfPlaces(const Pooling& p, const NarrowPlace* places, const Tensor& dy,
                         Tensor* dx) {
  if (const auto tile = TileOf(p); tile && dy.dtype() == DType::kFloat) {
    return SpreadOverTiles(p, *tile, places, dy.data<float>(), dx->data<float>());
  }
  Dispatch(dy.dtype(), RealTypes(),
           [&]<typename T>(T) { SumOfPlaces(p, dy.data<T>(), places, dx->data<T>()); });
}

void ReluMaxPoolWithPlaces(const Pooling& p, const Tensor& x, Tensor* y, NarrowPlace* places) {
  if (const auto tile = TileOf(p)) {
    return ReluMaxPoolTiles(p, *tile, x.data<float>(), y->data<float>(), places);
  }
  const int64_t n = x.num_elements();
  CountedVector<float> relu(n);
  ParallelFor(n, 0.3, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) relu[i] = ReluOf(x.data<float>()[i]);
  });
  FindPlaces(p, relu.data(), y->data<float>(), places);
}

void ReluMaxPoolGradOfPlaces(const Pooling& p, const Tensor& x, const NarrowPlace* places,
                             const Tensor& dy, Tensor* dx) {
  if (const auto tile = TileOf(p)) {
    return ReluSpreadOverTiles(p, *tile, places, dy.data<float>(), dx->data<float>());
  }
  SumOfPlaces(p, dy.data<float>(), places, dx->data<float>());
  const float* const in = x.data<float>();
  float* const out = dx->data<float>();
  ParallelFor(x.num_elements(), 0.3, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = in[i] > 0 ? out[i] : 0 * out[i];
  });
}

void MaxPoolGrad(const Pooling& p, const Tensor& x, const Tensor& dy, Tensor* dx) {
  if (const auto tile = TileOf(p); tile && x.dtype() == DType::kFloat) {
    return MaxPoolGradOfTiles(p, *tile, x.data<float>(), dy.data<float>(), dx->data<float>());
  }
  const auto run = [&]<typename T, typename Place>(T, Place) {
    CountedVector<Place> places(dy.num_elements());
    FindPlaces<T>(p, x.data<T>(), nullptr, places.data());
    SumOfPlaces(p, dy.data<T>(), places.data(), dx->data<T>());
  };
  const bool narrow = LargestWindow(p) <= kNarrowWindow;
  Dispatch(x.dtype(), RealTypes(),
           [&](auto value) { narrow ? run(value, NarrowPlace{}) : run(value, int64_t{}); });
}

}  // namespace tenon
