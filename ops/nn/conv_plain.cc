// SPDX-License-Identifier: Apache-2.0
#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "ops/math/gemm.h"
#include "ops/maths.h"
#include "ops/nn/conv.h"

namespace tenon {
namespace {

/// Elements of the gathered input that are in memory at once.
constexpr int64_t kPieceElements = 1 << 18;
/// Channels of a depthwise convolution that are computed together.
constexpr int64_t kChannelBlock = 32;

/// How far apart elements of an image are.
struct ImageLayout {
  ImageLayout(int64_t pixels, int64_t channels, bool channels_first)
      : image(pixels * channels),
        pixel(channels_first ? 1 : channels),
        channel(channels_first ? pixels : 1) {}
  int64_t image, pixel, channel;
};

template <typename T>
class PlainConvolution {
 public:
  PlainConvolution(const ConvShape& shape, const ConvArrays<T>& arrays)
      : s_(shape),
        a_(arrays),
        in_(shape.in_pixels(), shape.in_channels, shape.channels_first),
        out_(shape.out_pixels(), shape.out_channels, shape.channels_first) {}

  /// A sum over all images is made in order; otherwise threads take images.
  Status ByProducts(ConvPass pass) {
    if (pass == ConvPass::kFilter) return Images(pass, 0, s_.batch);
    CountedVector<Status> statuses(s_.batch);
    ParallelFor(s_.batch, 0.2 * s_.image_work(),
                [&](int64_t begin, int64_t end) { statuses[begin] = Images(pass, begin, end); });
    for (const Status& status : statuses) TENON_RETURN_IF_ERROR(status);
    return OkStatus();
  }

  /// A thread computes blocks of channels, of one image unless the sum is over all images, so that
  /// nobody else adds to the same element.
  void Depthwise(ConvPass pass) {
    const int64_t blocks = (s_.groups + kChannelBlock - 1) / kChannelBlock;
    const int64_t pixels = s_.out_pixels(), multiplier = s_.group_outputs();
    const bool all_images = pass == ConvPass::kFilter;
    const int64_t images = all_images ? s_.batch : 1;
    const auto zero = [&]<typename... Size>(T* to, Size... size) {
      std::fill_n(to, (size * ...), T(0));
    };
    if (pass == ConvPass::kOutput) zero(a_.output, s_.batch, out_.image);
    if (pass == ConvPass::kInput) zero(a_.input, s_.batch, in_.image);
    if (pass == ConvPass::kFilter) zero(a_.filter, s_.taps(), s_.out_channels);
    const double cost = 0.5 * static_cast<double>(images * pixels * kChannelBlock * multiplier) *
                        static_cast<double>(s_.taps());
    ParallelFor(blocks * s_.batch / images, cost, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t channel = item % blocks * kChannelBlock;
        const int64_t channels = std::min(kChannelBlock, s_.groups - channel);
        const int64_t first = item / blocks * images * pixels;
        for (int64_t row = first; row < first + images * pixels && !Interrupted(); ++row) {
          DepthwiseRow(pass, row, channel, channels);
        }
      }
    });
  }

 private:
  static void Load(T& here, T& there) { here = there; }
  static void Store(T& here, T& there) { there = here; }

  Status Images(ConvPass pass, int64_t begin, int64_t end) {
    const int64_t outputs = s_.group_outputs(), k = s_.taps() * s_.group_inputs();
    const int64_t last = end * s_.out_pixels(), rows = last - begin * s_.out_pixels();
    const int64_t piece = std::min(rows, std::max<int64_t>(1, kPieceElements / k));
    CountedVector<T> columns(piece * k), filter(k * outputs), results(piece * outputs);
    CountedVector<T> product(pass == ConvPass::kFilter ? k * outputs : 0);
    if (pass == ConvPass::kInput) {
      std::fill(a_.input + begin * in_.image, a_.input + end * in_.image, T(0));
    }
    for (int64_t g = 0; g < s_.groups; ++g) {
      if (pass == ConvPass::kFilter) {
        std::fill(filter.begin(), filter.end(), T(0));
      } else {
        MoveFilter(g, Load, filter.data());
      }
      for (int64_t first = last - rows; first < last && !Interrupted(); first += piece) {
        const int64_t n = std::min(piece, last - first);
        if (pass != ConvPass::kInput) Gather(first, n, g, columns.data());
        if (pass != ConvPass::kOutput) MoveResults(first, n, g, Load, results.data());
        if (pass == ConvPass::kOutput) {
          TENON_RETURN_IF_ERROR(Gemm(kDTypeOf<T>, {.m = n, .n = outputs, .k = k}, columns.data(),
                                     filter.data(), results.data()));
          MoveResults(first, n, g, Store, results.data());
        } else if (pass == ConvPass::kInput) {
          const GemmShape by_filter = {.m = n, .n = k, .k = outputs, .transpose_b = true};
          TENON_RETURN_IF_ERROR(
              Gemm(kDTypeOf<T>, by_filter, results.data(), filter.data(), columns.data()));
          Scatter(first, n, g, columns.data());
        } else {
          const GemmShape by_rows = {.m = k, .n = outputs, .k = n, .transpose_a = true};
          TENON_RETURN_IF_ERROR(
              Gemm(kDTypeOf<T>, by_rows, columns.data(), results.data(), product.data()));
          for (int64_t i = 0; i < k * outputs; ++i) filter[i] = Plus(filter[i], product[i]);
        }
      }
      if (pass == ConvPass::kFilter) MoveFilter(g, Store, filter.data());
    }
    return OkStatus();
  }

  /// Calls fn(tap, offset of that element in the input's channel 0) for what the window `row` of
  /// all images has within its image.
  template <typename Fn>
  void ForEachTap(int64_t row, Fn fn) const {
    const WindowCursor window(s_.axes, row);
    const int64_t image = window.image() * in_.image;
    window.ForEachPixel([&](int64_t tap, int64_t pixel) { fn(tap, image + pixel * in_.pixel); });
  }

  /// The windows [first, first + n) of a group's inputs as rows [n, taps * group_inputs]; zeros
  /// outside the image.
  void Gather(int64_t first, int64_t n, int64_t group, T* columns) const {
    const int64_t inputs = s_.group_inputs(), k = s_.taps() * inputs;
    ParallelFor(n, 1.0 * static_cast<double>(k), [&](int64_t begin, int64_t end) {
      std::fill(columns + begin * k, columns + end * k, T(0));
      for (int64_t r = begin; r < end; ++r) {
        ForEachTap(first + r, [&](int64_t tap, int64_t offset) {
          const T* const from = a_.input + offset + group * inputs * in_.channel;
          T* const to = columns + r * k + tap * inputs;
          for (int64_t c = 0; c < inputs; ++c) to[c] = from[c * in_.channel];
        });
      }
    });
  }

  /// Adds such rows to where Gather would take them from.
  void Scatter(int64_t first, int64_t n, int64_t group, const T* columns) {
    const int64_t inputs = s_.group_inputs(), taps = s_.taps();
    for (int64_t r = 0; r < n; ++r) {
      ForEachTap(first + r, [&](int64_t tap, int64_t offset) {
        const T* const from = columns + (r * taps + tap) * inputs;
        T* const to = a_.input + offset + group * inputs * in_.channel;
        for (int64_t c = 0; c < inputs; ++c) {
          to[c * in_.channel] = Plus(to[c * in_.channel], from[c]);
        }
      });
    }
  }

  /// move(element of `filter` [taps * group_inputs, group_outputs], that of the whole filter).
  template <typename Move>
  void MoveFilter(int64_t group, Move move, T* filter) {
    const int64_t outputs = s_.group_outputs();
    for (int64_t i = 0; i < s_.taps() * s_.group_inputs(); ++i) {
      T* const there = a_.filter + i * s_.out_channels + group * outputs;
      for (int64_t c = 0; c < outputs; ++c) move(filter[i * outputs + c], there[c]);
    }
  }

  /// move(element of `results` [n, group_outputs], that of the output).
  template <typename Move>
  void MoveResults(int64_t first, int64_t n, int64_t group, Move move, T* results) {
    const int64_t outputs = s_.group_outputs();
    for (int64_t r = 0; r < n; ++r) {
      T* const there = Result(first + r) + group * outputs * out_.channel;
      for (int64_t c = 0; c < outputs; ++c) move(results[r * outputs + c], there[c * out_.channel]);
    }
  }

  T* Result(int64_t row) const {
    const int64_t pixels = s_.out_pixels();
    return a_.output + row / pixels * out_.image + row % pixels * out_.pixel;
  }

  void DepthwiseRow(ConvPass pass, int64_t row, int64_t channel, int64_t channels) {
    const int64_t multiplier = s_.group_outputs();
    T* const results = Result(row) + channel * multiplier * out_.channel;
    ForEachTap(row, [&](int64_t tap, int64_t offset) {
      T* const x = a_.input + offset + channel * in_.channel;
      T* const f = a_.filter + tap * s_.out_channels + channel * multiplier;
      const auto for_each = [&](auto fn) {
        if (multiplier == 1 && !s_.channels_first) {
          TENON_SIMD
          for (int64_t c = 0; c < channels; ++c) fn(x[c], f[c], results[c]);
          return;
        }
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t i = c * multiplier; i < (c + 1) * multiplier; ++i) {
            fn(x[c * in_.channel], f[i], results[i * out_.channel]);
          }
        }
      };
      switch (pass) {
        case ConvPass::kOutput:
          return for_each([](T x, T f, T& y) { y = Plus(y, Times(x, f)); });
        case ConvPass::kInput:
          return for_each([](T& x, T f, T y) { x = Plus(x, Times(f, y)); });
        case ConvPass::kFilter:
          return for_each([](T x, T& f, T y) { f = Plus(f, Times(x, y)); });
      }
    });
  }

  const ConvShape& s_;
  const ConvArrays<T>& a_;
  const ImageLayout in_, out_;
};

}  // namespace

template <typename T>
Status PlainConv(ConvPass pass, const ConvShape& shape, const ConvArrays<T>& arrays) {
  PlainConvolution<T> conv(shape, arrays);
  if (shape.groups == 1 || shape.group_inputs() > 1) return conv.ByProducts(pass);
  conv.Depthwise(pass);
  return OkStatus();
}

template Status PlainConv(ConvPass, const ConvShape&, const ConvArrays<float>&);
template Status PlainConv(ConvPass, const ConvShape&, const ConvArrays<double>&);
template Status PlainConv(ConvPass, const ConvShape&, const ConvArrays<int32_t>&);

}  // namespace tenon
