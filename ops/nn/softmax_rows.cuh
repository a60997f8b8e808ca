// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "ops/cuda/element.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/merge.cuh"

// The numerics that softmax and the losses share, for one row that kThreads threads of a block take
// together: all of the block or a warp. Everything is relative to the row's maximum, so that no
// exponential overflows.

namespace tenon::cuda {

/// Rows up to this long are taken by a warp each.
inline constexpr int64_t kWarpRow = 1024;

/// What kThreads threads have, merged; the same in all of them.
template <int kThreads, typename V, typename Merge>
__device__ V MergeAll(V value, Merge merge) {
  if constexpr (kThreads == kWarp) {
    value = MergeWarp(value, merge);
    return __shfl_sync(kAllLanes, value, 0);
  } else {
    __shared__ V parts[kThreads / kWarp];
    return MergeBlock<kThreads>(value, parts, merge);
  }
}

struct MergeLarger {
  template <typename C>
  __device__ C operator()(C a, C b) const {
    return Larger(a, b);
  }
};
struct MergeSum {
  template <typename C>
  __device__ C operator()(C a, C b) const {
    return Plus(a, b);
  }
};

/// The largest of x(0) .. x(n - 1), NaN if any is.
template <int kThreads, typename Read>
__device__ auto VectorMax(const Read& x, int64_t n) {
  using C = decltype(x(0));
  C max = -std::numeric_limits<C>::infinity();
  for (int64_t i = threadIdx.x % kThreads; i < n; i += kThreads) max = Larger(max, x(i));
  return MergeAll<kThreads>(max, MergeLarger());
}

/// The sum of exp(x(i) - shift).
template <int kThreads, typename Read, typename C>
__device__ C RowExpSum(const Read& x, int64_t n, C shift) {
  double sum = 0;
  for (int64_t i = threadIdx.x % kThreads; i < n; i += kThreads) sum += std::exp(x(i) - shift);
  return static_cast<C>(MergeAll<kThreads>(sum, MergeSum()));
}

/// Calls `row(r)` for each row, by all threads that take it.
template <int kThreads, typename Row>
__global__ void __launch_bounds__(kBlockThreads) ForEachRowKernel(int64_t rows, const Row row) {
  constexpr int kGroups = kBlockThreads / kThreads;
  for (int64_t r = static_cast<int64_t>(blockIdx.x) * kGroups + threadIdx.x / kThreads; r < rows;
       r += static_cast<int64_t>(gridDim.x) * kGroups) {
    row.template operator()<kThreads>(r);
  }
}

/// Queues row.operator()<kThreads>(r) for all r in [0, rows), where rows have n elements.
template <typename Row>
Status ForEachRow(const KernelContext& ctx, int64_t rows, int64_t n, const Row& row) {
  if (rows <= 0) return OkStatus();
  if (n <= kWarpRow) {
    ForEachRowKernel<kWarp>
        <<<GridBlocks(rows * kWarp), kBlockThreads, 0, StreamOf(ctx)>>>(rows, row);
  } else {
    ForEachRowKernel<kBlockThreads>
        <<<static_cast<int>(std::min<int64_t>(rows, 132 * 16)), kBlockThreads, 0, StreamOf(ctx)>>>(
            rows, row);
  }
  return LaunchStatus();
}

}  // namespace tenon::cuda
