// SPDX-License-Identifier: Apache-2.0
//
// Max and average pooling and their gradients. One thread computes one element of the result and
// adds in the order of the CPU: gradients are gathered from the windows that an element is in.
#include "ops/nn/pooling.h"

#include <limits>

#include "ops/arguments.h"
#include "ops/cuda/element.cuh"
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/register.h"
#include "ops/nn/image_index.h"
#include "ops/nn/max_places.h"

namespace tenon::cuda {
namespace {

/// What a thread must know of a Pooling.
struct Geometry {
  explicit Geometry(const Pooling& p)
      : axes(p.axes), channels(p.channels), pixels(Pixels(p.axes)), windows(p.windows()) {}
  WindowAxes axes;
  int64_t channels, pixels, windows;
};

/// Element `i` of images that have `size` pixels or windows.
struct Element {
  __device__ Element(const Geometry& g, int64_t i, int64_t size)
      : channel(i % g.channels), number(i / g.channels % size), image(i / g.channels / size) {}
  int64_t channel, number, image;
};

/// The largest of each window, in which NaN is passed over, and where `places` is not null its
/// number there, the first of equals, for which a NaN counts that comes first.
template <typename T, typename P>
struct MaxOfWindow {
  Geometry g;
  const T* x;
  T* y;
  P* places;
  __device__ void operator()(int64_t i) const {
    const Element e(g, i, g.windows);
    const T* const in = x + e.image * g.pixels * g.channels + e.channel;
    using C = ComputeType<T>;
    C largest = std::numeric_limits<C>::lowest(), kept = C(0);
    int64_t number = 0, place = 0;
    ForEachPixelOf(g.axes, WindowAt(g.axes, e.number), [&](int64_t pixel, int64_t) {
      const C value = Widen(in[pixel * g.channels]);
      if (largest < value) largest = value;
      if (number == 0 || kept < value) {
        kept = value;
        place = number;
      }
      ++number;
    });
    if (y != nullptr) y[i] = Narrow<T>(largest);
    if (places != nullptr) places[i] = static_cast<P>(place);
  }
};

/// The sum of the gradients of those windows whose place is the element's.
template <typename T, typename P>
struct SumOfPlaces {
  Geometry g;
  const P* places;
  const T* dy;
  T* dx;
  __device__ void operator()(int64_t i) const {
    const Element e(g, i, g.pixels);
    const int64_t first = e.image * g.windows * g.channels + e.channel;
    using C = ComputeType<T>;
    C sum = C(0);
    ForEachWindowOf(g.axes, PixelAt(g.axes, e.number), [&](const WindowOfPixel& w) {
      const int64_t at = first + w.window * g.channels;
      if (static_cast<int64_t>(places[at]) == w.place) sum += Widen(dy[at]);
    });
    dx[i] = Narrow<T>(sum);
  }
};

/// The sum of the gradients of those windows with whose largest element this one ties.
template <typename T>
struct SumOfTies {
  Geometry g;
  const T *x, *y, *dy;
  T* dx;
  __device__ void operator()(int64_t i) const {
    const Element e(g, i, g.pixels);
    const int64_t first = e.image * g.windows * g.channels + e.channel;
    using C = ComputeType<T>;
    const C value = Widen(x[i]), tie = Widen(Narrow<T>(C(kMaxPool3DTie)));
    C sum = C(0);
    ForEachWindowOf(g.axes, PixelAt(g.axes, e.number), [&](const WindowOfPixel& w) {
      const int64_t at = first + w.window * g.channels;
      if (fabs(Widen(y[at]) - value) < tie) sum += Widen(dy[at]);
    });
    dx[i] = Narrow<T>(sum);
  }
};

/// Takes for each window the element of `grad` where x is first equal to y; 0 if it is nowhere.
template <typename T>
struct FirstEqual {
  Geometry g;
  const T *x, *y, *grad;
  T* z;
  __device__ void operator()(int64_t i) const {
    const Element e(g, i, g.windows);
    const int64_t first = e.image * g.pixels * g.channels + e.channel;
    using C = ComputeType<T>;
    const C largest = Widen(y[i]);
    int64_t found = -1;
    ForEachPixelOf(g.axes, WindowAt(g.axes, e.number), [&](int64_t pixel, int64_t) {
      const int64_t at = first + pixel * g.channels;
      if (found < 0 && Widen(x[at]) == largest) found = at;
    });
    z[i] = Narrow<T>(found < 0 ? C(0) : Widen(grad[found]));
  }
};

template <typename T>
struct MeanOfWindow {
  Geometry g;
  const T* x;
  T* y;
  __device__ void operator()(int64_t i) const {
    const Element e(g, i, g.windows);
    const T* const in = x + e.image * g.pixels * g.channels + e.channel;
    using C = ComputeType<T>;
    C sum = C(0);
    int64_t count = 0;
    ForEachPixelOf(g.axes, WindowAt(g.axes, e.number), [&](int64_t pixel, int64_t) {
      sum += Widen(in[pixel * g.channels]);
      ++count;
    });
    y[i] = Narrow<T>(sum / static_cast<C>(count));
  }
};

template <typename T>
struct SumOfMeans {
  Geometry g;
  const T* dy;
  T* dx;
  __device__ void operator()(int64_t i) const {
    const Element e(g, i, g.pixels);
    const int64_t first = e.image * g.windows * g.channels + e.channel;
    using C = ComputeType<T>;
    C sum = C(0);
    ForEachWindowOf(g.axes, PixelAt(g.axes, e.number), [&](const WindowOfPixel& w) {
      sum += Widen(dy[first + w.window * g.channels]) / static_cast<C>(w.count);
    });
    dx[i] = Narrow<T>(sum);
  }
};

// --- Kernels: the checks are those of the CPU ---

Status MaxPoolKernel(KernelContext& ctx, const Tensor& x, const Windows& attrs) {
  TENON_ASSIGN_OR_RETURN(const Windows w, WindowsOf(ctx, attrs, 1));
  TENON_ASSIGN_OR_RETURN(const Pooling p, MakePooling(w, x.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.CreateOutput(0, p.output));
  return DispatchStatus(x.dtype(), FloatTypes(), [&]<typename T>(T) {
    return ForEach(ctx, y->num_elements(),
                   MaxOfWindow<T, NarrowPlace>{Geometry(p), x.data<T>(), y->data<T>(), nullptr});
  });
}

Status MaxPoolWithPlacesKernel(KernelContext& ctx, const Tensor& x, const Windows& w) {
  TENON_ASSIGN_OR_RETURN(const Pooling p, NarrowPooling(w, x.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.CreateOutput(0, p.output));
  TENON_ASSIGN_OR_RETURN(Tensor * places, ctx.CreateOutput(1, p.output));
  return DispatchStatus(x.dtype(), FloatTypes(), [&]<typename T>(T) {
    return ForEach(ctx, y->num_elements(),
                   MaxOfWindow<T, NarrowPlace>{Geometry(p), x.data<T>(), y->data<T>(),
                                               places->data<NarrowPlace>()});
  });
}

template <typename P>
Status Spread(KernelContext& ctx, const Pooling& p, const P* places, const Tensor& dy, Tensor* dx) {
  return DispatchStatus(dy.dtype(), FloatTypes(), [&]<typename T>(T) {
    return ForEach(ctx, dx->num_elements(),
                   SumOfPlaces<T, P>{Geometry(p), places, dy.data<T>(), dx->data<T>()});
  });
}

Status MaxPoolGradOfPlacesKernel(KernelContext& ctx, const Windows& w) {
  const Tensor &x = ctx.input(0), &places = ctx.input(1), &dy = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const Pooling p, PoolingOfPlacesGrad(ctx, w));
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, x.shape()));
  return Spread(ctx, p, places.data<NarrowPlace>(), dy, dx);
}

Status MaxPoolGradKernel(KernelContext& ctx, const Windows& attrs) {
  const Tensor &x = ctx.input(0), &dy = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const Pooling p, PoolingOfGrad(ctx, attrs));
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, x.shape()));
  if (dx->num_elements() == 0) return OkStatus();
  TENON_ASSIGN_OR_RETURN(Tensor places, ctx.AllocateTemp(DType::kInt64, dy.shape()));
  TENON_RETURN_IF_ERROR(DispatchStatus(x.dtype(), FloatTypes(), [&]<typename T>(T) {
    return ForEach(
        ctx, dy.num_elements(),
        MaxOfWindow<T, int64_t>{Geometry(p), x.data<T>(), nullptr, places.data<int64_t>()});
  }));
  return Spread<int64_t>(ctx, p, places.data<int64_t>(), dy, dx);
}

Status MaxPool3DGradKernel(KernelContext& ctx, const Windows& w) {
  const Tensor &x = ctx.input(0), &y = ctx.input(1), &dy = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const Pooling p, PoolingOfGrad(ctx, w));
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, x.shape()));
  return DispatchStatus(x.dtype(), FloatTypes(), [&]<typename T>(T) {
    return ForEach(
        ctx, dx->num_elements(),
        SumOfTies<T>{Geometry(p), x.data<T>(), y.data<T>(), dy.data<T>(), dx->data<T>()});
  });
}

Status MaxPoolGradGradKernel(KernelContext& ctx, const Windows& attrs) {
  const Tensor &x = ctx.input(0), &y = ctx.input(1), &grad = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const Pooling p, PoolingOfGradGrad(ctx, attrs));
  TENON_ASSIGN_OR_RETURN(Tensor * z, ctx.AllocateOutput(0, y.shape()));
  return DispatchStatus(x.dtype(), FloatTypes(), [&]<typename T>(T) {
    return ForEach(
        ctx, z->num_elements(),
        FirstEqual<T>{Geometry(p), x.data<T>(), y.data<T>(), grad.data<T>(), z->data<T>()});
  });
}

Status AvgPoolKernel(KernelContext& ctx, const Tensor& x, const Windows& w) {
  TENON_ASSIGN_OR_RETURN(const Pooling p, MakeAveraging(w, x.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.CreateOutput(0, p.output));
  return DispatchStatus(x.dtype(), FloatTypes(), [&]<typename T>(T) {
    return ForEach(ctx, y->num_elements(), MeanOfWindow<T>{Geometry(p), x.data<T>(), y->data<T>()});
  });
}

Status AvgPoolGradKernel(KernelContext& ctx, const Shape& shape, const Tensor& dy,
                         const Windows& w) {
  TENON_ASSIGN_OR_RETURN(const Pooling p, MakeAveraging(w, shape));
  TENON_RETURN_IF_ERROR(CheckDims("grad", dy, p.output));
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.AllocateOutput(0, shape));
  return DispatchStatus(dy.dtype(), FloatTypes(), [&]<typename T>(T) {
    return ForEach(ctx, dx->num_elements(),
                   SumOfMeans<T>{Geometry(p), dy.data<T>(), dx->data<T>()});
  });
}

}  // namespace
}  // namespace tenon::cuda

namespace tenon {

void RegisterCudaPooling(OpRegistry& ops) {
  using namespace cuda;  // NOLINT
  const KernelOptions floats = {.types = {{"T", DTypesOf(FloatTypes())}}};
  const DTypeVector deep = DTypesOf(TypeList<float, Half, BFloat16>());
  for (const std::string version : {"", "V2"}) {
    AddKernel(ops, "MaxPool" + version, MaxPoolKernel, floats);
    AddKernel(ops, "MaxPoolGrad" + version, MaxPoolGradKernel, floats);
    AddKernel(ops, "MaxPoolGradGrad" + version, MaxPoolGradGradKernel, floats);
  }
  AddKernel(ops, "_MaxPoolWithPlaces", MaxPoolWithPlacesKernel, floats);
  AddKernel(ops, "_MaxPoolGradOfPlaces", MaxPoolGradOfPlacesKernel, floats);
  AddKernel(ops, "MaxPool3D", MaxPoolKernel, {.types = {{"T", deep}}});
  for (const DType t : deep) {
    AddKernel(ops, "MaxPool3DGrad", MaxPool3DGradKernel, {.types = {{"T", {t}}, {"TInput", {t}}}});
  }
  AddKernel(ops, "MaxPool3DGradGrad", MaxPoolGradGradKernel, {.types = {{"T", deep}}});
  for (const char* op : {"AvgPool", "AvgPool3D"}) {
    AddKernel(ops, op, AvgPoolKernel, floats);
    AddKernel(ops, std::string(op) + "Grad", AvgPoolGradKernel, floats);
  }
}

}  // namespace tenon
