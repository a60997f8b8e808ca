// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "ops/element_bytes.h"
#include "ops/maths.h"

// Elements as kernels see them: 16-bit floats are in memory only, and computed in float.

namespace tenon::cuda {

/// The element as what arithmetic on it is done in.
template <typename T>
__device__ __forceinline__ ComputeType<T> Widen(T x) {
  return x;
}
template <>
__device__ __forceinline__ float Widen<Half>(Half x) {
  return __half2float(__ushort_as_half(x.bits));
}
template <>
__device__ __forceinline__ float Widen<BFloat16>(BFloat16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}

/// A computed value as an element; floats are rounded to nearest even.
template <typename T, typename C>
__device__ __forceinline__ T Narrow(C x) {
  if constexpr (std::is_same_v<T, Half>) {
    Half h;
    h.bits = __half_as_ushort(__float2half_rn(static_cast<float>(x)));
    return h;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    BFloat16 b;
    b.bits = __bfloat16_as_ushort(__float2bfloat16_rn(static_cast<float>(x)));
    return b;
  } else {
    return static_cast<T>(x);
  }
}

}  // namespace tenon::cuda
