// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "core/base/interruption.h"
#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/nn/max_places.h"
#include "ops/nn/nn_ops.h"
#include "ops/nn/pooling.h"

namespace tenon {
namespace {

Status MaxPoolKernel(KernelContext& ctx, const Tensor& x, const Windows& attrs) {
  TENON_ASSIGN_OR_RETURN(const Windows w, WindowsOf(ctx, attrs, 1));
  TENON_ASSIGN_OR_RETURN(const Pooling p, MakePooling(w, x.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.CreateOutput(0, p.output));
  if (y->num_elements() != 0) MaxPool(p, x, y);
  return OkStatus();
}

Status MaxPoolGradKernel(KernelContext& ctx, const Windows& attrs) {
  const Tensor &x = ctx.input(0), &dy = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const Pooling p, PoolingOfGrad(ctx, attrs));
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, x.shape()));
  if (dx->num_elements() != 0) MaxPoolGrad(p, x, dy, dx);
  return OkStatus();
}

// --- With the numbers of the largest in their windows, which a pass lets the gradient have ---

Status MaxPoolWithPlacesKernel(KernelContext& ctx, const Tensor& x, const Windows& w) {
  TENON_ASSIGN_OR_RETURN(const Pooling p, NarrowPooling(w, x.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.CreateOutput(0, p.output));
  TENON_ASSIGN_OR_RETURN(Tensor * places, ctx.CreateOutput(1, p.output));
  if (y->num_elements() != 0) MaxPoolWithPlaces(p, x, y, places->data<NarrowPlace>());
  return OkStatus();
}

Status MaxPoolGradOfPlacesKernel(KernelContext& ctx, const Windows& w) {
  const Tensor &x = ctx.input(0), &places = ctx.input(1), &dy = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const Pooling p, PoolingOfPlacesGrad(ctx, w));
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, x.shape()));
  if (dx->num_elements() != 0) MaxPoolGradOfPlaces(p, places.data<NarrowPlace>(), dy, dx);
  return OkStatus();
}

Status ReluMaxPoolWithPlacesKernel(KernelContext& ctx, const Tensor& x, const Windows& w) {
  TENON_ASSIGN_OR_RETURN(const Pooling p, NarrowPooling(w, x.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.CreateOutput(0, p.output));
  TENON_ASSIGN_OR_RETURN(Tensor * places, ctx.CreateOutput(1, p.output));
  if (y->num_elements() != 0) ReluMaxPoolWithPlaces(p, x, y, places->data<NarrowPlace>());
  return OkStatus();
}

Status ReluMaxPoolGradOfPlacesKernel(KernelContext& ctx, const Windows& w) {
  const Tensor &x = ctx.input(0), &places = ctx.input(1), &dy = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const Pooling p, PoolingOfPlacesGrad(ctx, w));
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, x.shape()));
  if (dx->num_elements() != 0) {
    ReluMaxPoolGradOfPlaces(p, x, places.data<NarrowPlace>(), dy, dx);
  }
  return OkStatus();
}

/// The gradient goes to every element that ties with the largest of its window, where MaxPoolGrad's
/// goes to the first.
Status MaxPool3DGradKernel(KernelContext& ctx, const Windows& w) {
  const Tensor &x = ctx.input(0), &y = ctx.input(1), &dy = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const Pooling p, PoolingOfGrad(ctx, w));
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, x.shape()));
  if (dx->num_elements() == 0) return OkStatus();
  const double cost = p.cost() * static_cast<double>(p.windows());
  Dispatch(x.dtype(), FloatTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    const int64_t n = p.channels;
    const C tie = static_cast<C>(static_cast<T>(kMaxPool3DTie));
    SumIntoImages(p.batch, p.image(), cost, dx->data<T>(), [&](int64_t image, C* sums) {
      if (p.windows() == 0) return;
      PooledWindow window(p, 0);
      for (int64_t o = 0; o < p.windows() && !Interrupted(); ++o, window.Next()) {
        const int64_t row = (image * p.windows() + o) * n;
        const T *const largest = y.data<T>() + row, *const from = dy.data<T>() + row;
        const T* const pixels = x.data<T>() + image * p.image() + window.first_in_image();
        C* const to = sums + window.first_in_image();
        window.ForEachPixel([&](int64_t pixel) {
          const T* const in = pixels + pixel * n;
          C* const sum = to + pixel * n;
          TENON_SIMD
          for (int64_t c = 0; c < n; ++c) {
            const C below = static_cast<C>(largest[c]) - static_cast<C>(in[c]);
            sum[c] += std::abs(below) < tie ? static_cast<C>(from[c]) : C(0);
          }
        });
      }
    });
  });
  return OkStatus();
}

/// The kernel that takes, for each window, the element of `grad` where the input is first equal to
/// the output; 0 if it is nowhere.
Status MaxPoolGradGradKernel(KernelContext& ctx, const Windows& attrs) {
  const Tensor &x = ctx.input(0), &y = ctx.input(1), &grad = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const Pooling p, PoolingOfGradGrad(ctx, attrs));
  TENON_ASSIGN_OR_RETURN(Tensor * z, ctx.AllocateOutput(0, y.shape()));
  if (z->num_elements() == 0) return OkStatus();
  Dispatch(x.dtype(), RealTypes(), [&]<typename T>(T) {
    const int64_t n = p.channels;
    ParallelFor(p.batch * p.windows(), 2 * p.cost(), [&](int64_t begin, int64_t end) {
      CountedVector<uint8_t> found(n);
      PooledWindow window(p, begin);
      for (int64_t row = begin; row < end; ++row, window.Next()) {
        const T* const largest = y.data<T>() + row * n;
        T* const out = z->data<T>() + row * n;
        std::fill_n(out, n, T(0));
        std::fill(found.begin(), found.end(), 0);
        window.ForEachPixel([&](int64_t pixel) {
          const T* const in = x.data<T>() + window.first() + pixel * n;
          const T* const from = grad.data<T>() + window.first() + pixel * n;
          for (int64_t c = 0; c < n; ++c) {
            if (found[c] || !(in[c] == largest[c])) continue;
            out[c] = from[c];
            found[c] = 1;
          }
        });
      }
    });
  });
  return OkStatus();
}

// --- With the place of the largest ---

/// Finds for each of the `n` channels the largest element in a window, as MaxPoolWithPlaces does,
/// and the number of its pixel, counted from the window's first, at which `in` begins. Finds
/// nothing when the window has no pixels.
template <typename T>
void FindLargest(const PooledWindow& window, int64_t n, const T* in, T* largest, int64_t* pixels) {
  window.ForEachPixel([&](int64_t pixel) {
    const T* const elements = in + pixel * n;
    const bool first = pixel == 0;
    TENON_SIMD
    for (int64_t c = 0; c < n; ++c) {
      const bool larger = first | (largest[c] < elements[c]);
      largest[c] = larger ? elements[c] : largest[c];
      pixels[c] = larger ? pixel : pixels[c];
    }
  });
}

Status MaxPoolWithArgmaxKernel(KernelContext& ctx, const Windows& w, bool batch_in_index) {
  const Tensor& x = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const Pooling p, MakePlacePooling(w, x.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.CreateOutput(0, p.output));
  TENON_ASSIGN_OR_RETURN(Tensor * argmax, ctx.CreateOutput(1, p.output));
  if (y->num_elements() == 0) return OkStatus();
  const int64_t last = batch_in_index ? x.num_elements() : p.image();
  if (argmax->dtype() == DType::kInt32 && last > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("the places in ", x.shape(), " do not fit in int32");
  }
  const auto run = [&]<typename T, typename I>(T, I) {
    const int64_t n = p.channels;
    ParallelFor(p.batch * p.windows(), 2 * p.cost(), [&](int64_t begin, int64_t end) {
      CountedVector<int64_t> pixels(n);
      PooledWindow window(p, begin);
      for (int64_t row = begin; row < end; ++row, window.Next()) {
        const T* const in = x.data<T>() + window.first();
        FindLargest(window, n, in, y->data<T>() + row * n, pixels.data());
        const int64_t first = batch_in_index ? window.first() : window.first_in_image();
        for (int64_t c = 0; c < n; ++c) {
          const int64_t at = first + pixels[c] * n + c;
          argmax->data<I>()[row * n + c] = static_cast<I>(at);
        }
      }
    });
  };
  Dispatch(x.dtype(), RealTypes(), [&](auto t) {
    Dispatch(argmax->dtype(), TypeList<int32_t, int64_t>(), [&](auto i) { run(t, i); });
  });
  return OkStatus();
}

Status MaxPoolGradWithArgmaxKernel(KernelContext& ctx, const Windows& w, bool batch_in_index) {
  const Tensor &x = ctx.input(0), &dy = ctx.input(1), &argmax = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const Pooling p, MakePlacePooling(w, x.shape()));
  TENON_RETURN_IF_ERROR(CheckDims("grad", dy, p.output));
  TENON_RETURN_IF_ERROR(CheckDims("argmax", argmax, p.output));
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, x.shape()));
  const int64_t per_image = p.windows() * p.channels;
  const int64_t limit = batch_in_index ? x.num_elements() : p.image();
  int64_t wrong = -1;
  Dispatch(x.dtype(), RealTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    T* const sums = dx->data<T>();
    std::fill_n(sums, x.num_elements(), T(0));
    SerialFor(dy.num_elements(), 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at =
            argmax.dtype() == DType::kInt32 ? argmax.data<int32_t>()[i] : argmax.data<int64_t>()[i];
        if (at < 0 || at >= limit) {
          wrong = i;
          continue;
        }
        T& sum = sums[at + (batch_in_index ? 0 : i / per_image * p.image())];
        sum = static_cast<T>(Plus(static_cast<C>(sum), static_cast<C>(dy.data<T>()[i])));
      }
    });
  });
  if (wrong < 0) return OkStatus();
  return InvalidArgument("argmax[", wrong, "] is out of range [0, ", limit, ")");
}

Status ArgmaxShape(ShapeContext& c) {
  TENON_RETURN_IF_ERROR(PoolingShape(c));
  TENON_ASSIGN_OR_RETURN(const Windows w, Windows::Create(c.attrs()));
  TENON_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, w.rank));
  const auto sizes = absl::MakeSpan(w.ksize).subspan(w.spatial_axis(0), w.num_spatial());
  if (!x.rank_known()) return c.ReturnForEach(PartialShape::OfRank(w.rank));
  return c.ReturnForEach(w.Output(x, sizes, x.dim(w.channel_axis())));
}

// --- Registration ---

/// The gradients of pooling, of its gradient, and of that one's; `rest` are inputs of all three.
void GradToInput(GradContext& g, const std::string& grad) {
  g.dx(0) = g.num_inputs() == 3
                ? WithWindowsOf(g, grad, {g.in(0), g.out(0), g.dy(0), g.in(1), g.in(2)})
                : WithWindowsOf(g, grad, {g.in(0), g.out(0), g.dy(0)});
}

/// MaxPoolGrad and MaxPoolGradGrad are each other's gradients: both are linear in input 2.
void GradToThird(GradContext& g, const std::string& other) {
  g.dx(2) = g.num_inputs() == 5
                ? WithWindowsOf(g, other, {g.in(0), g.in(1), g.dy(0), g.in(3), g.in(4)})
                : WithWindowsOf(g, other, {g.in(0), g.in(1), g.dy(0)});
}

/// Distinct numbers, far enough apart for finite differences, in no order.
Tensor Scattered(DType type, const Shape& shape) {
  Tensor t(type, shape);
  const int64_t n = shape.num_elements();
  Dispatch(type, FloatTypes(), [&]<typename T>(T) {
    for (int64_t i = 0; i < n; ++i) t.data<T>()[i] = T(static_cast<float>(i * 37 % 101) / 8);
  });
  return t;
}

}  // namespace

void RegisterMaxPooling(OpRegistry& ops) {
  using List = std::vector<int64_t>;
  const auto kernel_types = [](const DTypeVector& t) { return KernelOptions{.types = {{"T", t}}}; };
  const KernelOptions reals = kernel_types(DTypesOf(RealTypes()));
  const Tensor x = Scattered(DType::kDouble, {2, 4, 3, 2});
  const Shape y = {2, 2, 3, 2};
  const List ksize = {1, 3, 2, 1}, strides = {1, 2, 1, 1};
  const AttributeMap attrs = {{"ksize", ksize}, {"strides", strides}, {"padding", "SAME"}};
  const AttributeMap padding = {{"padding", "SAME"}};
  const Tensor sizes = Tensor::Of<int32_t>({4}, {1, 3, 2, 1});
  const Tensor steps = Tensor::Of<int32_t>({4}, {1, 2, 1, 1});
  // For those that compare an input with the output, which a difference must not change.
  const Tensor same = Tensor::Of<double>({2, 4, 3, 2}, std::vector<double>(48));
  const Tensor largest = Tensor::Of<double>(y, std::vector<double>(24));
  for (const std::string version : {"", "V2"}) {
    const std::string grad = "MaxPoolGrad" + version, grad_grad = "MaxPoolGradGrad" + version;
    OpBuilder pool = ops.Add("MaxPool" + version, PoolingShape, MaxPoolKernel, reals)
                         .Grad([grad](GradContext& g) { GradToInput(g, grad); });
    OpBuilder by_input =
        ops.Add(grad, UnchangedShape, MaxPoolGradKernel, reals).Grad([grad_grad](GradContext& g) {
          GradToThird(g, grad_grad);
        });
    OpBuilder by_gradient = ops.Add(grad_grad, SecondInputShape, MaxPoolGradGradKernel, reals)
                                .Grad([grad](GradContext& g) { GradToThird(g, grad); });
    if (version.empty()) {
      pool.Example({x}, attrs);
      by_input.Example({same, largest, y}, attrs);
      by_gradient.Example({same, largest, x.shape()}, attrs);
    } else {
      pool.Example({x, sizes, steps}, padding);
      by_input.Example({same, largest, y, sizes, steps}, padding);
      by_gradient.Example({same, largest, x.shape(), sizes, steps}, padding);
    }
  }
  ops.Get("MaxPool")
      .Example({Shape{1, 2, 2, 4}},
               {{"ksize", List{1, 1, 1, 2}}, {"strides", List{1, 1, 1, 2}}, {"padding", "VALID"}})
      .Example({Shape{1, 2, 3, 3}}, {{"ksize", List{1, 1, 2, 2}},
                                     {"strides", List{1, 1, 1, 1}},
                                     {"padding", "EXPLICIT"},
                                     {"explicit_paddings", List{0, 0, 0, 0, 1, 0, 0, 1}},
                                     {"data_format", "NCHW"}});

  const Tensor places = Tensor::Of<uint8_t>(y, std::vector<uint8_t>(24));
  ops.Add("_MaxPoolWithPlaces", ArgmaxShape, MaxPoolWithPlacesKernel, reals).Example({x}, attrs);
  ops.Add("_MaxPoolGradOfPlaces", UnchangedShape, MaxPoolGradOfPlacesKernel, reals)
      .Example({x.shape(), places, y}, attrs);

  const KernelOptions only_float = kernel_types({DType::kFloat});
  ops.Add("_ReluMaxPoolWithPlaces", ArgmaxShape, ReluMaxPoolWithPlacesKernel, only_float)
      .Example({x.shape()}, attrs);
  ops.Add("_ReluMaxPoolGradOfPlaces", UnchangedShape, ReluMaxPoolGradOfPlacesKernel, only_float)
      .Example({x.shape(), places, y}, attrs);

  const KernelOptions with_index = {.types = reals.types, .attrs = {"include_batch_in_index"}};
  ops.Add("MaxPoolWithArgmax", ArgmaxShape, MaxPoolWithArgmaxKernel, with_index)
      .Grad([](GradContext& g) {
        g.dx(0) = WithWindowsOf(g, "MaxPoolGradWithArgmax", {g.in(0), g.dy(0), g.out(1)});
      })
      .Example({x}, attrs);
  ops.Add("MaxPoolGradWithArgmax", UnchangedShape, MaxPoolGradWithArgmaxKernel, with_index)
      .Example({Shape{1, 2, 2, 1}, Shape{1, 1, 1, 1}, Tensor::Of<int64_t>({1, 1, 1, 1}, {2})},
               {{"ksize", List{1, 2, 2, 1}}, {"strides", List{1, 1, 1, 1}}, {"padding", "VALID"}});

  const DTypeVector floats = DTypesOf(TypeList<float, Half, BFloat16>());
  const AttributeMap deep = {
      {"ksize", List{1, 2, 2, 2, 1}}, {"strides", List{1, 1, 2, 1, 1}}, {"padding", "VALID"}};
  const Shape x3 = {1, 3, 4, 2, 2}, y3 = {1, 2, 2, 1, 2};
  ops.Add("MaxPool3D", PoolingShape, MaxPoolKernel, kernel_types(floats))
      .Grad([](GradContext& g) { GradToInput(g, "MaxPool3DGrad"); })
      .Example({x3}, deep);
  for (const DType t : floats) {
    ops.Get("MaxPool3DGrad")
        .Kernel(kCpu, MaxPool3DGradKernel, {.types = {{"T", {t}}, {"TInput", {t}}}});
  }
  ops.Get("MaxPool3DGrad")
      .Shape(UnchangedShape)
      .Grad([](GradContext& g) { GradToThird(g, "MaxPool3DGradGrad"); })
      .Example({Scattered(DType::kFloat, x3), Shape{y3}, y3}, deep);
  ops.Add("MaxPool3DGradGrad", SecondInputShape, MaxPoolGradGradKernel, kernel_types(floats))
      .Grad([](GradContext& g) { GradToThird(g, "MaxPool3DGrad"); })
      .Example({x3, y3, x3}, deep);
}

}  // namespace tenon
