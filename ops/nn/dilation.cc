// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/maths.h"
#include "ops/nn/nn_ops.h"
#include "ops/nn/windows.h"

namespace tenon {
namespace {

/// Grayscale dilation: of [batch, pixels, channels] to [batch, windows, channels].
struct Dilation {
  int64_t batch = 0, channels = 0;
  WindowAxes axes;
  DimVector output;

  int64_t image() const { return Pixels(axes) * channels; }
  int64_t windows() const { return NumWindows(axes); }
  double cost() const {
    return 5 + static_cast<double>(axes[1].window) * static_cast<double>(axes[2].window) *
                   (1 + 0.3 * static_cast<double>(channels));
  }
};

StatusOr<Dilation> MakeDilation(const Windows& w, const Shape& input, const Shape& filter) {
  if (filter.rank() != 3) return InvalidArgument("filter must be 3-dimensional: ", filter);
  const int last = w.channel_axis();
  if (w.strides[last] != 1 || w.dilations[last] != 1) {
    return InvalidArgument("strides and rates must be 1 along channels");
  }
  Dilation d;
  TENON_ASSIGN_OR_RETURN(d.axes, w.Axes(input, filter.dims().first(2)));
  d.batch = input.dim(0);
  d.channels = input.dim(last);
  if (d.channels != filter.dim(2)) {
    return InvalidArgument("input and filter must have the same depth: ", input, " vs. ", filter);
  }
  d.output = {d.batch, d.axes[1].out, d.axes[2].out, d.channels};
  return d;
}

/// The largest sums of window `o`, and for whom wants to know, in which pixel and with which
/// element of the filter: the first of equals.
template <typename T>
void FindLargestSums(const Dilation& d, int64_t o, const T* image, const T* filter, T* largest,
                     int64_t* pixels, int64_t* taps) {
  const int64_t n = d.channels;
  const auto& [unused, height, width] = d.axes;
  const int64_t y = std::max<int64_t>(0, height.Start(o / width.out));
  const int64_t x = std::max<int64_t>(0, width.Start(o % width.out));
  std::fill_n(largest, n, T(std::numeric_limits<ComputeType<T>>::lowest()));
  std::fill_n(pixels, n, y * width.in + x);
  std::fill_n(taps, n, 0);
  WindowCursor(d.axes, o).ForEachPixel([&](int64_t tap, int64_t pixel) {
    for (int64_t c = 0; c < n; ++c) {
      using C = ComputeType<T>;
      const T sum = static_cast<T>(
          Plus(static_cast<C>(image[pixel * n + c]), static_cast<C>(filter[tap * n + c])));
      if (!(largest[c] < sum)) continue;
      largest[c] = sum;
      pixels[c] = pixel;
      taps[c] = tap;
    }
  });
}

Status DilationKernel(KernelContext& ctx, const Tensor& x, const Tensor& filter, const Windows& w) {
  TENON_ASSIGN_OR_RETURN(const Dilation d, MakeDilation(w, x.shape(), filter.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.CreateOutput(0, d.output));
  if (y->num_elements() == 0) return OkStatus();
  Dispatch(x.dtype(), RealTypes(), [&]<typename T>(T) {
    ParallelFor(d.batch * d.windows(), d.cost(), [&](int64_t begin, int64_t end) {
      CountedVector<int64_t> places(2 * d.channels);
      for (int64_t row = begin; row < end; ++row) {
        FindLargestSums(d, row % d.windows(), x.data<T>() + row / d.windows() * d.image(),
                        filter.data<T>(), y->data<T>() + row * d.channels, places.data(),
                        places.data() + d.channels);
      }
    });
  });
  return OkStatus();
}

/// The gradient by the input, or by the filter: each element of dy goes to what made the largest
/// sum.
template <bool kByFilter>
Status DilationGradKernel(KernelContext& ctx, const Windows& w) {
  const Tensor &x = ctx.input(0), &filter = ctx.input(1), &dy = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const Dilation d, MakeDilation(w, x.shape(), filter.shape()));
  if (dy.shape().dims() != absl::MakeConstSpan(d.output)) {
    return InvalidArgument("out_backprop must be [", Join(d.output, ","), "], found ", dy.shape());
  }
  TENON_ASSIGN_OR_RETURN(Tensor * to,
                         ctx.AllocateOutput(0, kByFilter ? filter.shape() : x.shape()));
  Dispatch(x.dtype(), RealTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    const int64_t n = d.channels;
    T* const sums = to->data<T>();
    std::fill_n(sums, to->num_elements(), T(0));
    if (dy.num_elements() == 0) return;
    const auto add_images = [&](int64_t begin, int64_t end) {
      CountedVector<T> largest(n);
      CountedVector<int64_t> pixels(n), taps(n);
      for (int64_t row = begin * d.windows(); row < end * d.windows() && !Interrupted(); ++row) {
        const int64_t image = row / d.windows() * d.image();
        FindLargestSums(d, row % d.windows(), x.data<T>() + image, filter.data<T>(), largest.data(),
                        pixels.data(), taps.data());
        for (int64_t c = 0; c < n; ++c) {
          T& sum = sums[kByFilter ? taps[c] * n + c : image + pixels[c] * n + c];
          sum =
              static_cast<T>(Plus(static_cast<C>(sum), static_cast<C>(dy.data<T>()[row * n + c])));
        }
      }
    };
    const double cost = d.cost() * static_cast<double>(d.windows());
    // All images add to the one filter.
    kByFilter ? SerialFor(d.batch, cost, add_images) : ParallelFor(d.batch, cost, add_images);
  });
  return OkStatus();
}

Status DilationShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const Windows w, Windows::Create(c.attrs()));
  TENON_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, w.rank));
  TENON_ASSIGN_OR_RETURN(const PartialShape filter, c.WithRank(1, 3));
  if (!x.rank_known() || !filter.rank_known()) return c.Return(PartialShape::OfRank(w.rank));
  TENON_ASSIGN_OR_RETURN(const PartialShape channels,
                         x.Part(w.channel_axis()).MergeWith(filter.Part(2)));
  return c.Return(w.Output(x, filter.dims().first(2), channels.dim(0)));
}

Status FilterShape(ShapeContext& c) { return c.Return(c.input(1)); }

}  // namespace

void RegisterDilation(OpRegistry& ops) {
  using List = std::vector<int64_t>;
  const KernelOptions reals = {.types = {{"T", DTypesOf(RealTypes())}}};
  const Shape x = {2, 4, 3, 2}, filter = {2, 2, 2}, y = {2, 2, 3, 2};
  const AttributeMap attrs = {
      {"strides", List{1, 2, 1, 1}}, {"rates", List{1, 1, 2, 1}}, {"padding", "SAME"}};
  ops.Add("Dilation2D", DilationShape, DilationKernel, reals)
      .Grad([](GradContext& g) {
        g.dx(0) = WithWindowsOf(g, "Dilation2DBackpropInput", {g.in(0), g.in(1), g.dy(0)});
        g.dx(1) = WithWindowsOf(g, "Dilation2DBackpropFilter", {g.in(0), g.in(1), g.dy(0)});
      })
      .Example({x, filter}, attrs);
  ops.Add("Dilation2DBackpropInput", UnchangedShape, DilationGradKernel<false>, reals)
      .Example({x, filter, y}, attrs);
  ops.Add("Dilation2DBackpropFilter", FilterShape, DilationGradKernel<true>, reals)
      .Example({x, filter, y}, attrs);
}

}  // namespace tenon
