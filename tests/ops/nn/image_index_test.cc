// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/image_index.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "ops/cuda/sorted_rows.h"
#include "ops/nn/conv_device.h"
#include "ops/nn/max_places.h"

// Where the kernels for GPUs find their elements, against the kernels for the CPU.

namespace tenon {
namespace {

using List = std::vector<int64_t>;

struct Case {
  List strides, dilations;
  std::string padding;
  List paddings = {};  // of height and width
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {{1, 1}, {1, 1}, "SAME"},  {{2, 1}, {1, 1}, "SAME"},
      {{2, 3}, {1, 1}, "VALID"}, {{1, 1}, {2, 1}, "SAME"},
      {{1, 2}, {3, 2}, "VALID"}, {{2, 1}, {1, 2}, "EXPLICIT", {1, 2, 0, 1}}};
  return cases;
}

Windows WindowsOf(const Case& c, const List& ksize = {}) {
  AttributeMap attrs = {{"strides", List{1, c.strides[0], c.strides[1], 1}},
                        {"dilations", List{1, c.dilations[0], c.dilations[1], 1}},
                        {"padding", c.padding}};
  if (!c.paddings.empty()) {
    List all = {0, 0};
    all.insert(all.end(), c.paddings.begin(), c.paddings.end());
    all.insert(all.end(), {0, 0});
    attrs.Set("explicit_paddings", all);
  }
  if (!ksize.empty()) attrs.Set("ksize", ksize);
  return Windows::Create(attrs).value();
}

/// Numbers in no order, some of them equal.
Tensor Scattered(const Shape& shape) {
  Tensor t(DType::kDouble, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<double>()[i] = static_cast<double>(i * 37 % 19) - 9;
  }
  return t;
}

TEST(ImageIndexTest, PixelsOfAWindowAreThoseThatAreInIt) {
  for (const Case& c : Cases()) {
    const WindowAxes axes = WindowsOf(c).Axes({1, 9, 8, 1}, {3, 2}).value();
    std::vector<std::array<int64_t, 4>> by_window, by_pixel;
    for (int64_t o = 0; o < NumWindows(axes); ++o) {
      int64_t place = 0;
      const int64_t count = PixelsOf(axes, WindowAt(axes, o));
      ForEachPixelOf(axes, WindowAt(axes, o), [&](int64_t pixel, int64_t tap) {
        by_window.push_back({pixel, o, place++, tap});
      });
      EXPECT_EQ(place, count);
    }
    for (int64_t pixel = 0; pixel < Pixels(axes); ++pixel) {
      ForEachWindowOf(axes, PixelAt(axes, pixel), [&](const WindowOfPixel& w) {
        by_pixel.push_back({pixel, w.window, w.place, w.tap});
        EXPECT_EQ(w.count, PixelsOf(axes, WindowAt(axes, w.window)));
      });
    }
    std::sort(by_window.begin(), by_window.end());
    EXPECT_TRUE(std::is_sorted(by_pixel.begin(), by_pixel.end()));
    EXPECT_EQ(by_window, by_pixel);
  }
}

TEST(ImageIndexTest, MaximaAreThoseOfTheCpu) {
  for (const Case& c : Cases()) {
    if (c.dilations != List{1, 1}) continue;
    const Tensor x = Scattered({2, 9, 8, 1});
    const Pooling p = MakePooling(WindowsOf(c, {1, 3, 3, 1}), x.shape()).value();
    Tensor y(DType::kDouble, Shape(p.output));
    MaxPool(p, x, &y);
    for (int64_t i = 0; i < y.num_elements(); ++i) {
      double largest = std::numeric_limits<double>::lowest();
      const int64_t image = i / p.windows() * Pixels(p.axes);
      ForEachPixelOf(p.axes, WindowAt(p.axes, i % p.windows()), [&](int64_t pixel, int64_t) {
        largest = std::max(largest, x.data<double>()[image + pixel]);
      });
      EXPECT_EQ(largest, y.data<double>()[i]) << c.padding << " " << i;
    }
  }
}

TEST(ConvIndexTest, SumsAreThoseOfTheCpu) {
  for (const Case& c : Cases()) {
    ConvShape s;
    s.batch = 2;
    s.in_channels = 4;
    s.out_channels = 6;
    s.groups = 2;
    const Shape in = {2, 9, 8, 4}, filter_shape = {3, 2, 2, 6};
    s.axes = WindowsOf(c).Axes(in, {3, 2}).value();
    const Shape out = {2, s.axes[1].out, s.axes[2].out, 6};
    const Tensor x = Scattered(in), filter = Scattered(filter_shape), dy = Scattered(out);
    const cuda::ConvIndex index(s);
    Tensor y(DType::kDouble, out), dx(DType::kDouble, in), df(DType::kDouble, filter_shape);
    ASSERT_TRUE(Convolve(ConvPass::kOutput, s, x, filter, y).ok());
    ASSERT_TRUE(Convolve(ConvPass::kInput, s, dx, filter, dy).ok());
    ASSERT_TRUE(Convolve(ConvPass::kFilter, s, x, df, dy).ok());
    std::vector<double> sums(df.num_elements());
    for (int64_t image = 0; image < s.batch; ++image) {
      for (int64_t o = 0; o < 6; ++o) {
        const int64_t first = o / s.group_outputs() * s.group_inputs();
        for (int64_t window = 0; window < s.out_pixels(); ++window) {
          double sum = 0;
          for (int64_t tap = 0; tap < s.taps(); ++tap) {
            const int64_t pixel = index.PixelUnder(window, tap);
            if (pixel < 0) continue;
            EXPECT_EQ(index.WindowOver(pixel, tap), window);
            for (int64_t i = 0; i < 2; ++i) {
              const double value = x.data<double>()[index.in.At(image, pixel, first + i)];
              sum += value * filter.data<double>()[index.FilterAt(tap, i, o)];
              sums[index.FilterAt(tap, i, o)] +=
                  value * dy.data<double>()[index.out.At(image, window, o)];
            }
          }
          EXPECT_EQ(sum, y.data<double>()[index.out.At(image, window, o)]);
        }
      }
      for (int64_t channel = 0; channel < 4; ++channel) {
        const int64_t group = channel / s.group_inputs();
        for (int64_t pixel = 0; pixel < s.in_pixels(); ++pixel) {
          double sum = 0;
          for (int64_t tap = 0; tap < s.taps(); ++tap) {
            const int64_t window = index.WindowOver(pixel, tap);
            for (int64_t o = group * 3; window >= 0 && o < group * 3 + 3; ++o) {
              sum += dy.data<double>()[index.out.At(image, window, o)] *
                     filter.data<double>()[index.FilterAt(tap, channel % 2, o)];
            }
          }
          EXPECT_EQ(sum, dx.data<double>()[index.in.At(image, pixel, channel)]);
        }
      }
    }
    for (int64_t i = 0; i < df.num_elements(); ++i) EXPECT_EQ(sums[i], df.data<double>()[i]);
  }
}

TEST(RowSpanTest, FindsTheFirstAndTheEndOfEqualRows) {
  const uint64_t rows[] = {0, 0, 2, 2, 2, 5, 7, 7};
  const uint32_t places[] = {1, 4, 0, 2, 3, 7, 5, 6};
  const cuda::RowSpan span{rows, places, 8, 7};
  const List firsts = {0, -1, 2, -1, -1, 5, -1, -1};
  for (int64_t k = 0; k < 8; ++k) EXPECT_EQ(span.FirstOfRow(k), firsts[k]) << k;
  EXPECT_EQ(span.EndOfRow(0), 2);
  EXPECT_EQ(span.EndOfRow(2), 5);
  EXPECT_EQ(span.EndOfRow(5), 6);
  EXPECT_EQ(cuda::LowerBound(rows, 8, 7), 6);
  EXPECT_EQ(cuda::LowerBound(rows, 8, 8), 8);
  EXPECT_EQ(cuda::LowerBound(rows, 0, 1), 0);
}

}  // namespace
}  // namespace tenon
