// SPDX-License-Identifier: Apache-2.0
#include "ops/arguments.h"
#include "ops/cuda/element.cuh"
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/merge.cuh"
#include "ops/cuda/register.h"

namespace tenon {
namespace cuda {
namespace {

struct ScanSum {
  template <typename C>
  __device__ static C Start() {
    return C(0);
  }
  template <typename C>
  __device__ static C Next(C a, C b) {
    return Plus(a, b);
  }
};

struct ScanProduct {
  template <typename C>
  __device__ static C Start() {
    return C(1);
  }
  template <typename C>
  __device__ static C Next(C a, C b) {
    return Times(a, b);
  }
};

/// Lines of `n` elements that are `inner` apart.
template <typename T>
struct Lines {
  const T* x;
  T* out;
  int64_t lines, n, inner;
  bool exclusive, reverse;

  /// Where element `k` of line `l` is, as the scan comes to it.
  __device__ int64_t At(int64_t l, int64_t k) const {
    return l / inner * n * inner + l % inner + (reverse ? n - 1 - k : k) * inner;
  }
};

/// A thread walks a line: neighbouring threads walk neighbouring lines.
template <typename Scan, typename T>
struct ScanLine {
  Lines<T> p;
  __device__ void operator()(int64_t l) const {
    using C = ComputeType<T>;
    C sum = Scan::template Start<C>();
    for (int64_t k = 0; k < p.n; ++k) {
      const int64_t at = p.At(l, k);
      const C before = sum;
      sum = Scan::Next(sum, Widen(p.x[at]));
      p.out[at] = Narrow<T>(p.exclusive ? before : sum);
    }
  }
};

/// What the threads of a block have, up to and with each one's own; `total` is that of the last.
template <typename Scan, typename C>
__device__ C ScanBlock(C value, C (&totals)[kBlockThreads / kWarp], C* total) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
#pragma unroll
  for (int distance = 1; distance < kWarp; distance *= 2) {
    const C other = ShuffleUp(value, distance);
    if (lane >= distance) value = Scan::Next(other, value);
  }
  if (lane == kWarp - 1) totals[warp] = value;
  __syncthreads();
  C before = Scan::template Start<C>(), all = before;
#pragma unroll
  for (int w = 0; w < kBlockThreads / kWarp; ++w) {
    if (w < warp) before = Scan::Next(before, totals[w]);
    all = Scan::Next(all, totals[w]);
  }
  __syncthreads();
  *total = all;
  return Scan::Next(before, value);
}

/// A block walks a line, in pieces of an element a thread.
template <typename Scan, typename T>
__global__ void __launch_bounds__(kBlockThreads) ScanLines(const __grid_constant__ Lines<T> p) {
  using C = ComputeType<T>;
  __shared__ C totals[kBlockThreads / kWarp];
  __shared__ C inclusive[kBlockThreads];
  for (int64_t l = blockIdx.x; l < p.lines; l += gridDim.x) {
    C carry = Scan::template Start<C>();
    for (int64_t first = 0; first < p.n; first += kBlockThreads) {
      const int64_t k = first + threadIdx.x;
      const C value = k < p.n ? Widen(p.x[p.At(l, k)]) : Scan::template Start<C>();
      C total;
      const C sum = Scan::Next(carry, ScanBlock<Scan>(value, totals, &total));
      inclusive[threadIdx.x] = sum;
      __syncthreads();
      if (k < p.n) {
        const C before = threadIdx.x == 0 ? carry : inclusive[threadIdx.x - 1];
        p.out[p.At(l, k)] = Narrow<T>(p.exclusive ? before : sum);
      }
      carry = Scan::Next(carry, total);
      __syncthreads();
    }
  }
}

template <typename Scan>
Status ScanKernel(KernelContext& ctx, const Tensor& x, bool exclusive, bool reverse) {
  TENON_ASSIGN_OR_RETURN(const int axis, ReadAxis(ctx.input(1), x.rank(), "scan axis"));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, x.shape()));
  if (x.num_elements() == 0) return OkStatus();
  const int64_t n = x.dim(axis), inner = Product(x.shape().dims(), axis + 1, x.rank());
  const int64_t lines = x.num_elements() / n;
  return DispatchStatus(x.dtype(), RealTypes(), [&]<typename T>(T) {
    const Lines<T> p{x.data<T>(), out->data<T>(), lines, n, inner, exclusive, reverse};
    if (inner >= kWarp || n <= 16) return ForEach(ctx, lines, ScanLine<Scan, T>{p});
    ScanLines<Scan, T>
        <<<static_cast<int>(std::min<int64_t>(lines, 132 * 16)), kBlockThreads, 0, StreamOf(ctx)>>>(
            p);
    return LaunchStatus();
  });
}

}  // namespace
}  // namespace cuda

void RegisterCudaScans(OpRegistry& ops) {
  const KernelOptions options = {.types = {{"T", DTypesOf(RealTypes())}},
                                 .attrs = {"exclusive", "reverse"}};
  cuda::AddKernel(ops, "Cumsum", cuda::ScanKernel<cuda::ScanSum>, options);
  cuda::AddKernel(ops, "Cumprod", cuda::ScanKernel<cuda::ScanProduct>, options);
}

}  // namespace tenon
