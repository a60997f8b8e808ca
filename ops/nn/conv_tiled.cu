// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/element.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/nn/conv_device.h"

namespace tenon::cuda {
namespace {

// The product that a pass is: result[m, n] = the sum of A(m, k) * B(k, n), for each group.

template <typename T>
struct OutputProduct {
  using Element = T;
  ConvIndex i;
  const T *x, *filter;
  T* y;
  int64_t m() const { return i.batch * i.out_pixels; }
  int64_t n() const { return i.outputs; }
  int64_t k() const { return i.taps * i.inputs; }
  __device__ ComputeType<T> A(int64_t group, int64_t m, int64_t k) const {
    const int64_t pixel = i.PixelUnder(m % i.out_pixels, k / i.inputs);
    if (pixel < 0) return 0;
    const int64_t channel = group * i.inputs + k % i.inputs;
    return Widen(x[i.in.At(m / i.out_pixels, pixel, channel)]);
  }
  __device__ ComputeType<T> B(int64_t group, int64_t k, int64_t n) const {
    return Widen(filter[k * i.out_channels + group * i.outputs + n]);
  }
  __device__ T* Result(int64_t group, int64_t m, int64_t n) const {
    return y + i.out.At(m / i.out_pixels, m % i.out_pixels, group * i.outputs + n);
  }
};

template <typename T>
struct InputProduct {
  using Element = T;
  ConvIndex i;
  const T *dy, *filter;
  T* dx;
  int64_t m() const { return i.batch * i.in_pixels; }
  int64_t n() const { return i.inputs; }
  int64_t k() const { return i.taps * i.outputs; }
  __device__ ComputeType<T> A(int64_t group, int64_t m, int64_t k) const {
    const int64_t window = i.WindowOver(m % i.in_pixels, k / i.outputs);
    if (window < 0) return 0;
    const int64_t channel = group * i.outputs + k % i.outputs;
    return Widen(dy[i.out.At(m / i.in_pixels, window, channel)]);
  }
  __device__ ComputeType<T> B(int64_t group, int64_t k, int64_t n) const {
    return Widen(filter[i.FilterAt(k / i.outputs, n, group * i.outputs + k % i.outputs)]);
  }
  __device__ T* Result(int64_t group, int64_t m, int64_t n) const {
    return dx + i.in.At(m / i.in_pixels, m % i.in_pixels, group * i.inputs + n);
  }
};

template <typename T>
struct FilterProduct {
  using Element = T;
  ConvIndex i;
  const T *x, *dy;
  T* df;
  int64_t m() const { return i.taps * i.inputs; }
  int64_t n() const { return i.outputs; }
  int64_t k() const { return i.batch * i.out_pixels; }
  __device__ ComputeType<T> A(int64_t group, int64_t m, int64_t k) const {
    const int64_t pixel = i.PixelUnder(k % i.out_pixels, m / i.inputs);
    if (pixel < 0) return 0;
    const int64_t channel = group * i.inputs + m % i.inputs;
    return Widen(x[i.in.At(k / i.out_pixels, pixel, channel)]);
  }
  __device__ ComputeType<T> B(int64_t group, int64_t k, int64_t n) const {
    return Widen(dy[i.out.At(k / i.out_pixels, k % i.out_pixels, group * i.outputs + n)]);
  }
  __device__ T* Result(int64_t group, int64_t m, int64_t n) const {
    return df + m * i.out_channels + group * i.outputs + n;
  }
};

/// A block computes kTile x kTile results, a thread kOwn x kOwn of them, kDepth steps of k at a
/// time.
constexpr int kTile = 64, kDepth = 16, kOwn = 4;
static_assert(kTile / kOwn * (kTile / kOwn) == kBlockThreads);

/// The sizes of a product, whose k is cut into `splits` parts that are summed up in order later.
struct ProductSizes {
  int64_t m, n, k, split_k;
  int splits;
};

/// Block (x, y, group * splits + split). With more than one split the sums go to
/// partial[split][group][m][n].
template <typename P, typename C = ComputeType<typename P::Element>>
__global__ void __launch_bounds__(kBlockThreads)
    TiledProduct(const __grid_constant__ P p, const ProductSizes s, C* partial) {
  __shared__ C a[kDepth][kTile + 1], b[kDepth][kTile];
  const int thread = threadIdx.x;
  const int64_t m0 = static_cast<int64_t>(blockIdx.x) * kTile;
  const int64_t n0 = static_cast<int64_t>(blockIdx.y) * kTile;
  const int split = blockIdx.z % s.splits;
  const int64_t group = blockIdx.z / s.splits, groups = gridDim.z / s.splits;
  const int64_t begin = split * s.split_k, end = min(s.k, begin + s.split_k);
  const int row = thread / (kTile / kOwn) * kOwn, column = thread % (kTile / kOwn) * kOwn;
  C sums[kOwn][kOwn] = {};
  for (int64_t k0 = begin; k0 < end; k0 += kDepth) {
    for (int e = thread; e < kTile * kDepth; e += kBlockThreads) {
      const int64_t m = m0 + e / kDepth, k = k0 + e % kDepth;
      a[e % kDepth][e / kDepth] = m < s.m && k < end ? p.A(group, m, k) : C(0);
    }
    for (int e = thread; e < kTile * kDepth; e += kBlockThreads) {
      const int64_t k = k0 + e / kTile, n = n0 + e % kTile;
      b[e / kTile][e % kTile] = k < end && n < s.n ? p.B(group, k, n) : C(0);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
#pragma unroll
        for (int j = 0; j < kOwn; ++j) sums[i][j] += a[k][row + i] * b[k][column + j];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < kOwn; ++i) {
    for (int j = 0; j < kOwn; ++j) {
      const int64_t m = m0 + row + i, n = n0 + column + j;
      if (m >= s.m || n >= s.n) continue;
      if (s.splits == 1) {
        *p.Result(group, m, n) = Narrow<typename P::Element>(sums[i][j]);
      } else {
        partial[((split * groups + group) * s.m + m) * s.n + n] = sums[i][j];
      }
    }
  }
}

template <typename P, typename C = ComputeType<typename P::Element>>
struct SumSplits {
  P p;
  ProductSizes s;
  int64_t results;  // of all groups
  const C* partial;
  __device__ void operator()(int64_t r) const {
    C sum = C(0);
    for (int k = 0; k < s.splits; ++k) sum += partial[k * results + r];
    const int64_t n = r % s.n, m = r / s.n % s.m, group = r / s.n / s.m;
    *p.Result(group, m, n) = Narrow<typename P::Element>(sum);
  }
};

int64_t Tiles(int64_t n) { return (n + kTile - 1) / kTile; }

template <typename P>
Status QueueProduct(KernelContext& ctx, const P& p, int64_t groups) {
  using C = ComputeType<typename P::Element>;
  constexpr int64_t kMostY = 65535;  // blocks along y and z
  ProductSizes s{p.m(), p.n(), p.k(), 0, 1};
  const int64_t tiles = Tiles(s.m) * Tiles(s.n) * groups;
  if (Tiles(s.m) > INT32_MAX || Tiles(s.n) > kMostY || groups > kMostY) {
    return Unimplemented("a convolution that is a product of ", s.m, " by ", s.n, " in ", groups,
                         " groups");
  }
  // The gradient of a filter has few results, each a long sum. How that is cut depends on the sizes
  // alone, so that results are the same on every GPU.
  constexpr int64_t kEnoughBlocks = 512, kWorthIt = 1024;
  s.splits = static_cast<int>(std::clamp<int64_t>(
      std::min({kEnoughBlocks / std::max<int64_t>(tiles, 1), s.k / kWorthIt, kMostY / groups}), 1,
      64));
  s.split_k = ((s.k + s.splits - 1) / s.splits + kDepth - 1) / kDepth * kDepth;
  const int64_t results = s.m * s.n * groups;
  Tensor partial;
  if (s.splits > 1) {
    TENON_ASSIGN_OR_RETURN(partial, ctx.AllocateTemp(kDTypeOf<C>, {s.splits, results}));
  }
  C* const sums = s.splits > 1 ? partial.data<C>() : nullptr;
  const dim3 grid(static_cast<unsigned>(Tiles(s.m)), static_cast<unsigned>(Tiles(s.n)),
                  static_cast<unsigned>(groups * s.splits));
  TiledProduct<P><<<grid, kBlockThreads, 0, StreamOf(ctx)>>>(p, s, sums);
  TENON_RETURN_IF_ERROR(LaunchStatus());
  if (s.splits == 1) return OkStatus();
  return ForEach(ctx, results, SumSplits<P>{p, s, results, sums});
}

}  // namespace

Status ConvolveTiled(KernelContext& ctx, ConvPass pass, const ConvShape& shape, const Tensor& input,
                     const Tensor& filter, const Tensor& output) {
  const ConvIndex index(shape);
  return DispatchStatus(input.dtype(), FloatTypes(), [&]<typename T>(T) -> Status {
    T* const x = const_cast<T*>(input.data<T>());
    T* const f = const_cast<T*>(filter.data<T>());
    T* const y = const_cast<T*>(output.data<T>());
    switch (pass) {
      case ConvPass::kOutput:
        return QueueProduct(ctx, OutputProduct<T>{index, x, f, y}, shape.groups);
      case ConvPass::kInput:
        return QueueProduct(ctx, InputProduct<T>{index, y, f, x}, shape.groups);
      case ConvPass::kFilter:
        return QueueProduct(ctx, FilterProduct<T>{index, x, y, f}, shape.groups);
    }
    return Internal("no such pass");
  });
}

}  // namespace tenon::cuda
