// SPDX-License-Identifier: Apache-2.0
//
// Convolutions whose channels are by themselves. One thread makes one sum, in the order of the CPU,
// but for the gradient of the filter, whose long sums are cut into chunks.
#include "ops/cuda/element.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/nn/conv_device.h"

namespace tenon::cuda {
namespace {

template <typename T>
struct OutputElement {
  ConvIndex i;
  const T *x, *filter;
  T* y;
  __device__ void operator()(int64_t e) const {
    const int64_t channel = e % i.out_channels, place = e / i.out_channels;
    const int64_t image = place / i.out_pixels, window = place % i.out_pixels;
    ComputeType<T> sum = 0;
    ForEachPixelOf(i.axes, WindowAt(i.axes, window), [&](int64_t pixel, int64_t tap) {
      sum += Widen(x[i.in.At(image, pixel, channel / i.outputs)]) *
             Widen(filter[i.FilterAt(tap, 0, channel)]);
    });
    y[i.out.At(image, window, channel)] = Narrow<T>(sum);
  }
};

template <typename T>
struct InputElement {
  ConvIndex i;
  int64_t channels;
  const T *dy, *filter;
  T* dx;
  __device__ void operator()(int64_t e) const {
    const int64_t channel = e % channels, place = e / channels;
    const int64_t image = place / i.in_pixels, pixel = place % i.in_pixels;
    ComputeType<T> sum = 0;
    ForEachWindowOf(i.axes, PixelAt(i.axes, pixel), [&](const WindowOfPixel& w) {
      for (int64_t c = channel * i.outputs; c < (channel + 1) * i.outputs; ++c) {
        sum += Widen(filter[i.FilterAt(w.tap, 0, c)]) * Widen(dy[i.out.At(image, w.window, c)]);
      }
    });
    dx[i.in.At(image, pixel, channel)] = Narrow<T>(sum);
  }
};

constexpr int kFilterLanes = 32, kFilterRows = kBlockThreads / kFilterLanes;

/// partial[chunk][tap][channel]: sums over a chunk of the windows of all images. Block (tap and
/// channels, chunk): its lanes are neighbouring channels.
template <typename T, typename C = ComputeType<T>>
__global__ void __launch_bounds__(kBlockThreads)
    FilterChunks(const __grid_constant__ ConvIndex i, int64_t chunk, const T* x, const T* dy,
                 C* partial) {
  __shared__ C shared[kFilterRows][kFilterLanes];
  const int lane = threadIdx.x % kFilterLanes, row = threadIdx.x / kFilterLanes;
  const int64_t tap = blockIdx.x % i.taps;
  const int64_t channel = static_cast<int64_t>(blockIdx.x) / i.taps * kFilterLanes + lane;
  const int64_t begin = blockIdx.y * chunk, end = min(begin + chunk, i.batch * i.out_pixels);
  C sum = C(0);
  if (channel < i.out_channels) {
    for (int64_t place = begin + row; place < end; place += kFilterRows) {
      const int64_t image = place / i.out_pixels, window = place % i.out_pixels;
      const int64_t pixel = i.PixelUnder(window, tap);
      if (pixel < 0) continue;
      sum += Widen(x[i.in.At(image, pixel, channel / i.outputs)]) *
             Widen(dy[i.out.At(image, window, channel)]);
    }
  }
  shared[row][lane] = sum;
  __syncthreads();
  if (row != 0 || channel >= i.out_channels) return;
  for (int r = 1; r < kFilterRows; ++r) sum += shared[r][lane];
  partial[(blockIdx.y * i.taps + tap) * i.out_channels + channel] = sum;
}

template <typename T, typename C = ComputeType<T>>
struct SumFilterChunks {
  int64_t chunks, size;
  const C* partial;
  T* df;
  __device__ void operator()(int64_t e) const {
    C sum = C(0);
    for (int64_t k = 0; k < chunks; ++k) sum += partial[k * size + e];
    df[e] = Narrow<T>(sum);
  }
};

template <typename T>
Status QueueFilter(KernelContext& ctx, const ConvIndex& i, const T* x, const T* dy, T* df) {
  using C = ComputeType<T>;
  constexpr int64_t kChunk = 2048, kMostChunks = 256;
  const int64_t places = i.batch * i.out_pixels, size = i.taps * i.out_channels;
  const int64_t chunks = std::clamp<int64_t>((places + kChunk - 1) / kChunk, 1, kMostChunks);
  const int64_t blocks = (i.out_channels + kFilterLanes - 1) / kFilterLanes * i.taps;
  if (blocks > INT32_MAX) return Unimplemented("a filter of ", size, " elements");
  TENON_ASSIGN_OR_RETURN(Tensor partial, ctx.AllocateTemp(kDTypeOf<C>, {chunks, size}));
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(chunks));
  FilterChunks<T><<<grid, kBlockThreads, 0, StreamOf(ctx)>>>(i, (places + chunks - 1) / chunks, x,
                                                             dy, partial.data<C>());
  TENON_RETURN_IF_ERROR(LaunchStatus());
  return ForEach(ctx, size, SumFilterChunks<T>{chunks, size, partial.data<C>(), df});
}

}  // namespace

Status ConvolveDepthwise(KernelContext& ctx, ConvPass pass, const ConvShape& shape,
                         const Tensor& input, const Tensor& filter, const Tensor& output) {
  const ConvIndex index(shape);
  return DispatchStatus(input.dtype(), FloatTypes(), [&]<typename T>(T) -> Status {
    T* const x = const_cast<T*>(input.data<T>());
    T* const f = const_cast<T*>(filter.data<T>());
    T* const y = const_cast<T*>(output.data<T>());
    switch (pass) {
      case ConvPass::kOutput:
        return ForEach(ctx, output.num_elements(), OutputElement<T>{index, x, f, y});
      case ConvPass::kInput:
        return ForEach(ctx, input.num_elements(),
                       InputElement<T>{index, shape.in_channels, y, f, x});
      case ConvPass::kFilter:
        return QueueFilter<T>(ctx, index, x, y, f);
    }
    return Internal("no such pass");
  });
}

}  // namespace tenon::cuda
