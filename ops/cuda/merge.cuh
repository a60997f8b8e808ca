// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

// Merging what threads of a warp or a block have, in an order that is always the same.

namespace tenon::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

/// Calls `shuffle(word)` for each word of a value, and gives the value that the results make.
template <typename V, typename Shuffle>
__device__ __forceinline__ V ShuffleWords(V value, Shuffle shuffle) {
  static_assert(sizeof(V) <= 16);
  constexpr int kWords = (sizeof(V) + 3) / 4;
  unsigned words[kWords] = {};
  std::memcpy(words, &value, sizeof(V));
#pragma unroll
  for (int w = 0; w < kWords; ++w) words[w] = shuffle(words[w]);
  std::memcpy(&value, words, sizeof(V));
  return value;
}

/// The value that the lane `distance` above has. All lanes of the warp call it.
template <typename V>
__device__ __forceinline__ V ShuffleDown(V value, int distance) {
  return ShuffleWords(value,
                      [distance](unsigned w) { return __shfl_down_sync(kAllLanes, w, distance); });
}
/// The value that the lane `distance` below has, the lane's own where there is none. The same.
template <typename V>
__device__ __forceinline__ V ShuffleUp(V value, int distance) {
  return ShuffleWords(value,
                      [distance](unsigned w) { return __shfl_up_sync(kAllLanes, w, distance); });
}

/// What all lanes of a warp have, merged; right in lane 0. All lanes call it.
template <typename V, typename Merge>
__device__ V MergeWarp(V value, Merge merge) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = merge(value, ShuffleDown(value, distance));
  }
  return value;
}

/// The same of a block of kThreads, at most 1024, right in all threads. All threads of the block
/// call it, and may use what `parts`, shared memory, was used for again after it.
template <int kThreads, typename V, typename Merge>
__device__ V MergeBlock(V value, V (&parts)[kThreads / kWarp], Merge merge) {
  static_assert(kThreads % kWarp == 0 && kThreads <= kWarp * kWarp);
  value = MergeWarp(value, merge);
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = value;
  __syncthreads();
  value = parts[0];
#pragma unroll
  for (int w = 1; w < kThreads / kWarp; ++w) value = merge(value, parts[w]);
  __syncthreads();
  return value;
}

}  // namespace tenon::cuda
