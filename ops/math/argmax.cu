// SPDX-License-Identifier: Apache-2.0
#include "ops/math/argmax.h"

#include <limits>

#include "ops/arguments.h"
#include "ops/cuda/element.cuh"
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/merge.cuh"
#include "ops/cuda/register.h"

namespace tenon {
namespace cuda {
namespace {

/// An element and where it is; of none that was chosen, behind all places.
template <typename C>
struct Best {
  C value;
  int64_t index;
};

template <bool kMax>
struct Better {
  template <typename C>
  __device__ Best<C> operator()(Best<C> a, Best<C> b) const {
    if (kMax ? b.value > a.value : b.value < a.value) return b;
    return b.value == a.value && b.index < a.index ? b : a;
  }
};

/// kThreads take a line of `n` elements, `inner` apart: as the host does, the first of the best
/// that is better than the worst of all numbers, else the first element.
template <typename T, bool kMax, int kThreads>
__global__ void __launch_bounds__(kBlockThreads)
    FindBest(const T* x, int64_t lines, int64_t n, int64_t inner, void* out, int index_bytes) {
  using C = ComputeType<T>;
  constexpr int kGroups = kBlockThreads / kThreads;
  const int lane = static_cast<int>(threadIdx.x) % kThreads;
  for (int64_t o = static_cast<int64_t>(blockIdx.x) * kGroups + threadIdx.x / kThreads; o < lines;
       o += static_cast<int64_t>(gridDim.x) * kGroups) {
    const T* line = x + o / inner * n * inner + o % inner;
    Best<C> best{kMax ? std::numeric_limits<C>::lowest() : std::numeric_limits<C>::max(),
                 INT64_MAX};
    for (int64_t i = lane; i < n; i += kThreads) {
      const C v = Widen(line[i * inner]);
      if (kMax ? v > best.value : v < best.value) best = {v, i};
    }
    if constexpr (kThreads == kWarp) best = MergeWarp(best, Better<kMax>());
    if constexpr (kThreads > kWarp) {
      __shared__ Best<C> parts[kThreads / kWarp];
      best = MergeBlock<kThreads>(best, parts, Better<kMax>());
    }
    if (lane != 0) continue;
    const int64_t index = best.index == INT64_MAX ? 0 : best.index;
    if (index_bytes == 8) static_cast<int64_t*>(out)[o] = index;
    if (index_bytes == 4) static_cast<int32_t*>(out)[o] = static_cast<int32_t>(index);
    if (index_bytes == 2) static_cast<int16_t*>(out)[o] = static_cast<int16_t>(index);
  }
}

template <bool kMax>
Status ArgBestKernel(KernelContext& ctx, const Tensor& x) {
  TENON_ASSIGN_OR_RETURN(const int axis, ReadArgAxis(x.shape(), ctx.input(1)));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape().WithoutDim(axis)));
  const int64_t n = x.dim(axis), inner = Product(x.shape().dims(), axis + 1, x.rank());
  const int64_t lines = y->num_elements();
  if (lines == 0) return OkStatus();
  const auto bytes = static_cast<int>(SizeOf(y->dtype()));
  const cudaStream_t stream = StreamOf(ctx);
  return DispatchStatus(x.dtype(), ArgBestTypes(), [&]<typename T>(T) {
    // Neighbouring lines are read together where lines are not contiguous.
    if (inner > 1 || n <= 8) {
      FindBest<T, kMax, 1><<<GridBlocks(lines), kBlockThreads, 0, stream>>>(
          x.data<T>(), lines, n, inner, y->raw_data(), bytes);
    } else if (n <= 2048) {
      FindBest<T, kMax, kWarp><<<GridBlocks(lines * kWarp), kBlockThreads, 0, stream>>>(
          x.data<T>(), lines, n, inner, y->raw_data(), bytes);
    } else {
      FindBest<T, kMax, kBlockThreads>
          <<<static_cast<int>(std::min<int64_t>(lines, 132 * 16)), kBlockThreads, 0, stream>>>(
              x.data<T>(), lines, n, inner, y->raw_data(), bytes);
    }
    return LaunchStatus();
  });
}

}  // namespace
}  // namespace cuda

void RegisterCudaArgMax(OpRegistry& ops) {
  const KernelOptions options = {.types = {{"T", DTypesOf(ArgBestTypes())}}};
  cuda::AddKernel(ops, "ArgMax", cuda::ArgBestKernel<true>, options);
  cuda::AddKernel(ops, "ArgMin", cuda::ArgBestKernel<false>, options);
}

}  // namespace tenon
