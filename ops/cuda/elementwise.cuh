// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cuda/element.cuh"
#include "ops/cuda/failure.cuh"
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/strided_index.h"
#include "ops/elementwise.h"

// The structs that are elementwise ops (ops/elementwise.h) as kernels of the GPU, for all of their
// dtypes but text and complex numbers.

namespace tenon::cuda {

/// Elements that a thread takes at once, where they lie together.
inline constexpr int64_t kPack = 4;

template <typename T>
struct alignas(sizeof(T) * kPack < 16 ? sizeof(T) * kPack : 16) Pack {
  T v[kPack];
};

template <typename T>
bool IsPackAligned(const T* p) {
  return reinterpret_cast<uintptr_t>(p) % alignof(Pack<T>) == 0;
}

/// The type of Op's results for elements of T, computed as Applied.
template <typename Op, typename T, typename Applied>
using ResultType = decltype(elementwise_internal::ResultOf<Op, T, Applied>());

template <typename Op, typename T, typename R>
__global__ void __launch_bounds__(kBlockThreads)
    UnaryPass(const T* x, R* y, int64_t n, bool packs) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t groups = packs ? n / kPack : 0;
  for (int64_t i = first; i < groups; i += stride) {
    const Pack<T> in = reinterpret_cast<const Pack<T>*>(x)[i];
    Pack<R> out;
#pragma unroll
    for (int k = 0; k < kPack; ++k) out.v[k] = Narrow<R>(Op::Apply(Widen(in.v[k])));
    reinterpret_cast<Pack<R>*>(y)[i] = out;
  }
  for (int64_t i = groups * kPack + first; i < n; i += stride) {
    y[i] = Narrow<R>(Op::Apply(Widen(x[i])));
  }
}

using UnaryLaunch = void (*)(cudaStream_t stream, const void* x, void* y, int64_t n);

template <typename Op, typename T>
void LaunchUnary(cudaStream_t stream, const void* x, void* y, int64_t n) {
  using R = ResultType<Op, T, decltype(Op::Apply(ComputeType<T>()))>;
  const T* in = static_cast<const T*>(x);
  R* out = static_cast<R*>(y);
  const bool packs = IsPackAligned(in) && IsPackAligned(out);
  UnaryPass<Op, T, R>
      <<<GridBlocks(packs ? n / kPack : n), kBlockThreads, 0, stream>>>(in, out, n, packs);
}

/// Marks an element for which Op is not valid.
template <typename Op, typename T>
__device__ void CheckValid(T x, T y, RunCheck check) {
  if constexpr (std::is_integral_v<T> && requires { Op::Valid(x, y); }) {
    if (!Op::Valid(x, y)) NoteFailure(check, 1);
  }
}

/// The second operand as Op gets it: its OfSecond may change it.
template <typename Op, typename T, typename C>
__device__ C SecondOf(C y) {
  if constexpr (requires { Op::OfSecond(y); }) {
    return Widen(Narrow<T>(Op::OfSecond(y)));
  } else {
    return y;
  }
}

/// An operand's elements of one group.
template <typename T>
__device__ Pack<T> LoadPack(const T* x, bool repeats) {
  if (!repeats) return *reinterpret_cast<const Pack<T>*>(x);
  const T value = *x;
  Pack<T> pack;
#pragma unroll
  for (int k = 0; k < kPack; ++k) pack.v[k] = value;
  return pack;
}

template <typename Op, typename T, typename R>
__global__ void __launch_bounds__(kBlockThreads)
    BinaryPass(const T* x, const T* y, R* z, const __grid_constant__ BroadcastIndex<2> plan,
               RunCheck check) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t groups = plan.packs ? plan.count / kPack : 0;
  int64_t from[2];
  for (int64_t i = first; i < groups; i += stride) {
    plan.index.At(i * kPack, from);
    const Pack<T> a = LoadPack(x + from[0], plan.repeats[0]);
    const Pack<T> b = LoadPack(y + from[1], plan.repeats[1]);
    Pack<R> out;
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      const auto p = Widen(a.v[k]), q = Widen(b.v[k]);
      CheckValid<Op>(p, q, check);
      out.v[k] = Narrow<R>(Op::Apply(p, SecondOf<Op, T>(q)));
    }
    reinterpret_cast<Pack<R>*>(z)[i] = out;
  }
  for (int64_t i = groups * kPack + first; i < plan.count; i += stride) {
    plan.index.At(i, from);
    const auto p = Widen(x[from[0]]), q = Widen(y[from[1]]);
    CheckValid<Op>(p, q, check);
    z[i] = Narrow<R>(Op::Apply(p, SecondOf<Op, T>(q)));
  }
}

using BinaryLaunch = void (*)(cudaStream_t stream, const void* x, const void* y, void* z,
                              const BroadcastIndex<2>& plan, RunCheck check);

template <typename Op, typename T>
void LaunchBinary(cudaStream_t stream, const void* x, const void* y, void* z,
                  const BroadcastIndex<2>& wanted, RunCheck check) {
  using C = ComputeType<T>;
  using R = ResultType<Op, T, decltype(Op::Apply(C(), C()))>;
  const T *a = static_cast<const T*>(x), *b = static_cast<const T*>(y);
  R* out = static_cast<R*>(z);
  BroadcastIndex<2> plan = wanted;
  plan.packs &= IsPackAligned(out) && (plan.repeats[0] || IsPackAligned(a)) &&
                (plan.repeats[1] || IsPackAligned(b));
  BinaryPass<Op, T, R>
      <<<GridBlocks(plan.packs ? plan.count / kPack : plan.count), kBlockThreads, 0, stream>>>(
          a, b, out, plan, check);
}

/// What the templates collect of an op, so that the rest is compiled once.
template <typename Launch>
struct ElementwiseKernels {
  std::string_view name;
  DTypeVector types = {};
  std::array<Launch, kNumDTypes> launches{};
  std::string_view error = {};  // of elements that are not valid
  bool same_shape = false;
};
void AddUnaryKernels(OpRegistry& ops, const ElementwiseKernels<UnaryLaunch>& kernels);
void AddBinaryKernels(OpRegistry& ops, const ElementwiseKernels<BinaryLaunch>& kernels);

template <typename T>
inline constexpr bool kIsDeviceElement = std::is_trivially_copyable_v<T> && !kIsComplex<T>;

template <typename Op, typename... Ts>
void AddUnary(OpRegistry& ops, TypeList<Ts...>) {
  ElementwiseKernels<UnaryLaunch> kernels{.name = Op::kName};
  const auto add = [&]<typename T>(T*) {
    if constexpr (kIsDeviceElement<T>) {
      kernels.types.push_back(kDTypeOf<T>);
      kernels.launches[static_cast<int>(kDTypeOf<T>)] = &LaunchUnary<Op, T>;
    }
  };
  (add(static_cast<Ts*>(nullptr)), ...);
  if (!kernels.types.empty()) AddUnaryKernels(ops, kernels);
}

template <typename Op, typename... Ts>
void AddBinary(OpRegistry& ops, TypeList<Ts...>) {
  ElementwiseKernels<BinaryLaunch> kernels{.name = Op::kName};
  if constexpr (requires { Op::kError; }) kernels.error = Op::kError;
  if constexpr (requires { Op::kSameShape; }) kernels.same_shape = true;
  const auto add = [&]<typename T>(T*) {
    if constexpr (kIsDeviceElement<T>) {
      kernels.types.push_back(kDTypeOf<T>);
      kernels.launches[static_cast<int>(kDTypeOf<T>)] = &LaunchBinary<Op, T>;
    }
  };
  (add(static_cast<Ts*>(nullptr)), ...);
  if (!kernels.types.empty()) AddBinaryKernels(ops, kernels);
}

/// Registers kernels for every op of a list.
template <typename... Ops>
void AddUnaryList(OpRegistry& ops, TypeList<Ops...>) {
  (AddUnary<Ops>(ops, typename Ops::Types()), ...);
}
template <typename... Ops>
void AddBinaryList(OpRegistry& ops, TypeList<Ops...>) {
  (AddBinary<Ops>(ops, typename Ops::Types()), ...);
}

}  // namespace tenon::cuda
