// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/top_k.h"

#include <bit>
#include <limits>

#include "ops/arguments.h"
#include "ops/cuda/element.cuh"
#include "ops/cuda/group_rows.h"
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/merge.cuh"
#include "ops/cuda/register.h"

namespace tenon {
namespace cuda {
namespace {

/// How many bits the order of elements has.
template <typename T>
inline constexpr int kKeyBits = sizeof(ComputeType<T>) == 8 ? 64 : 32;

/// A number of kKeyBits that is the smaller, the earlier an element comes: the larger first, and
/// NaN before all.
template <typename T>
__device__ uint64_t OrderKey(T element) {
  using C = ComputeType<T>;
  using Bits = std::conditional_t<kKeyBits<T> == 64, uint64_t, uint32_t>;
  constexpr Bits kTop = Bits{1} << (kKeyBits<T> - 1);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<Bits>(~(static_cast<Bits>(element) ^ (std::is_signed_v<T> ? kTop : 0)));
  } else {
    const C x = Widen(element) + C(0);  // -0 is 0
    if (IsNan(x)) return 0;
    const Bits bits = std::bit_cast<Bits>(x);
    return static_cast<Bits>(~((bits & kTop) != 0 ? ~bits : bits | kTop));
  }
}

/// A place in a row in the order of the result.
struct Ranked {
  uint64_t key;
  int64_t place;
};
struct Earlier {
  __device__ static bool Before(const Ranked& a, const Ranked& b) {
    return a.key != b.key ? a.key < b.key : a.place < b.place;
  }
  __device__ Ranked operator()(const Ranked& a, const Ranked& b) const {
    return Before(b, a) ? b : a;
  }
};

template <typename T, typename Index>
struct Rows {
  const T* in;
  int64_t rows, n, k;
  T* values;
  Index* indices;

  __device__ void Write(int64_t r, int64_t rank, int64_t place) const {
    values[r * k + rank] = in[r * n + place];
    indices[r * k + rank] = static_cast<Index>(place);
  }
};

/// A block looks for the first of its row, then for the first after that, and so on.
template <typename T, typename Index>
__global__ void __launch_bounds__(kBlockThreads)
    SelectTop(const __grid_constant__ Rows<T, Index> p) {
  __shared__ Ranked parts[kBlockThreads / kWarp];
  for (int64_t r = blockIdx.x; r < p.rows; r += gridDim.x) {
    Ranked last{0, -1};
    for (int64_t rank = 0; rank < p.k; ++rank) {
      Ranked first{~uint64_t{0}, INT64_MAX};
      for (int64_t i = threadIdx.x; i < p.n; i += kBlockThreads) {
        const Ranked here{OrderKey(p.in[r * p.n + i]), i};
        if (Earlier::Before(last, here) && Earlier::Before(here, first)) first = here;
      }
      last = MergeBlock<kBlockThreads>(first, parts, Earlier());
      if (threadIdx.x == 0) p.Write(r, rank, last.place);
    }
  }
}

/// Keys of `rows` rows, the row in the bits above those of the order where there are several.
template <typename T>
struct MakeKey {
  const T* in;
  int64_t n;
  uint64_t* keys;
  __device__ void operator()(int64_t i) const {
    uint64_t key = OrderKey(in[i]);
    if constexpr (kKeyBits<T> == 32) key |= static_cast<uint64_t>(i / n) << 32;
    keys[i] = key;
  }
};

/// Of rows whose places were sorted, counted from the first row's beginning.
template <typename T, typename Index>
struct TakeSorted {
  Rows<T, Index> p;
  const uint32_t* sorted;
  __device__ void operator()(int64_t i) const {
    const int64_t r = i / p.k, rank = i % p.k;
    p.Write(r, rank, sorted[r * p.n + rank] - r * p.n);
  }
};

template <typename T, typename Index>
Status SortRows(KernelContext& ctx, const Rows<T, Index>& p) {
  const int64_t elements = p.rows * p.n;
  TENON_ASSIGN_OR_RETURN(Tensor keys, ctx.AllocateTemp(DType::kUInt64, {elements}));
  TENON_RETURN_IF_ERROR(ForEach(ctx, elements, MakeKey<T>{p.in, p.n, keys.data<uint64_t>()}));
  const int bits = kKeyBits<T> == 64 ? 64 : 32 + std::bit_width(static_cast<uint64_t>(p.rows - 1));
  TENON_ASSIGN_OR_RETURN(const SortedPairs sorted, SortKeys(ctx, keys, bits));
  return ForEach(ctx, p.rows * p.k, TakeSorted<T, Index>{p, sorted.values.data<uint32_t>()});
}

/// Whether the first `k` of rows are found sooner one by one than by sorting; microseconds,
/// roughly.
bool IsSelected(int64_t rows, int64_t n, int64_t k, int64_t sorts) {
  const double steps = static_cast<double>((rows + 1023) / 1024) * static_cast<double>(k);
  return steps * (1 + 1e-4 * static_cast<double>(n)) <=
         40 * static_cast<double>(sorts) + 1e-3 * static_cast<double>(rows * n);
}

template <typename T, typename Index>
Status TopOfRows(KernelContext& ctx, const Rows<T, Index>& p) {
  // Keys of 64 bits leave no room for the row: such rows are sorted one by one.
  const int64_t together = kKeyBits<T> == 64 ? 1 : std::max<int64_t>(INT32_MAX / p.n, 1);
  const int64_t sorts = (p.rows + together - 1) / together;
  if (IsSelected(p.rows, p.n, p.k, sorts)) {
    SelectTop<T, Index><<<static_cast<int>(std::min<int64_t>(p.rows, 132 * 16)), kBlockThreads, 0,
                          StreamOf(ctx)>>>(p);
    return LaunchStatus();
  }
  for (int64_t r = 0; r < p.rows; r += together) {
    const int64_t count = std::min(together, p.rows - r);
    TENON_RETURN_IF_ERROR(SortRows(ctx, Rows<T, Index>{p.in + r * p.n, count, p.n, p.k,
                                                       p.values + r * p.k, p.indices + r * p.k}));
  }
  return OkStatus();
}

Status TopK(KernelContext& ctx, int64_t k) {
  const Tensor& in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const Shape shape, TopKResult(in.shape(), k));
  TENON_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(0, shape));
  TENON_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(1, shape));
  if (shape.num_elements() == 0) return OkStatus();
  const int64_t n = in.dim(in.rank() - 1), rows = in.num_elements() / n;
  return DispatchStatus(in.dtype(), RealTypes(), [&]<typename T>(T) {
    return DispatchStatus(
        indices->dtype(), TypeList<int16_t, int32_t, int64_t>(), [&]<typename Index>(Index) {
          if (n - 1 > std::numeric_limits<Index>::max()) return TooLongFor(indices->dtype(), n);
          return TopOfRows(ctx, Rows<T, Index>{in.data<T>(), rows, n, k, values->data<T>(),
                                               indices->data<Index>()});
        });
  });
}

Status TopKV2Kernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const int64_t k, ReadInteger(ctx.input(1), "k"));
  return TopK(ctx, k);
}

}  // namespace
}  // namespace cuda

void RegisterCudaTopK(OpRegistry& ops) {
  const DTypeVector real = DTypesOf(RealTypes());
  cuda::AddKernel(ops, "TopK", cuda::TopK, {.types = {{"T", real}}, .attrs = {"k"}});
  cuda::AddKernel(ops, "TopKV2", cuda::TopKV2Kernel, {.types = {{"T", real}}});
}

}  // namespace tenon
