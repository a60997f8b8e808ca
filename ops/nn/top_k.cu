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
  __device__ bool Before(const Ranked& other) const {
    return key != other.key ? key < other.key : place < other.place;
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

/// The most elements of a row that a block selects, in shared memory.
constexpr int kMostSelected = 1024;

/// What the first elements of a row have in common, as far as it is known: those whose key has the
/// smallest bits under `mask` come first, and of those with `prefix` so many are wanted.
struct Threshold {
  uint64_t prefix = 0, mask = 0;
  int64_t wanted = 0;
  bool all = false;  // that have the prefix
};

/// Looks at eight bits more: how many keys have which. All threads of the block call it; `counts`
/// and `found` are in shared memory.
template <int kThreads, typename T>
__device__ void Refine(const T* row, int64_t n, int shift, uint32_t* counts, Threshold* found) {
  for (int i = threadIdx.x; i < 256; i += kThreads) counts[i] = 0;
  __syncthreads();
  const uint64_t prefix = found->prefix, mask = found->mask;
  for (int64_t begin = 0; begin < n; begin += kThreads) {
    const int64_t i = begin + threadIdx.x;
    const uint64_t key = i < n ? OrderKey(row[i]) : 0;
    const bool counts_here = i < n && (key & mask) == prefix;
    const unsigned digit = counts_here ? static_cast<unsigned>(key >> shift) & 255 : 256;
    // Keys are alike, so that most of a warp would wait for one counter.
    const unsigned alike = __match_any_sync(kAllLanes, digit);
    if (counts_here && __ffs(alike) - 1 == static_cast<int>(threadIdx.x % kWarp)) {
      atomicAdd(&counts[digit], __popc(alike));
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    int digit = 0;
    while (counts[digit] < found->wanted) found->wanted -= counts[digit++];
    found->prefix |= static_cast<uint64_t>(digit) << shift;
    found->mask |= uint64_t{255} << shift;
    found->all = counts[digit] == found->wanted;
  }
  __syncthreads();
}

/// Writes to `chosen` the elements before the threshold, in no order, and of those at it the
/// `wanted` first. All threads of the block call it; `taken` and `parts` are in shared memory.
template <int kThreads, typename T>
__device__ void Choose(const T* row, int64_t n, int64_t k, const Threshold& t, Ranked* chosen,
                       unsigned* taken, unsigned* parts) {
  if (threadIdx.x == 0) *taken = 0;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < n; i += kThreads) {
    const uint64_t key = OrderKey(row[i]);
    const uint64_t known = key & t.mask;
    if (known < t.prefix || (t.all && known == t.prefix)) chosen[atomicAdd(taken, 1)] = {key, i};
  }
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  int64_t before = 0;  // at the threshold, in parts of the row that have been seen
  for (int64_t begin = 0; !t.all && begin < n && before < t.wanted; begin += kThreads) {
    const int64_t i = begin + threadIdx.x;
    const bool here = i < n && OrderKey(row[i]) == t.prefix;
    const unsigned votes = __ballot_sync(kAllLanes, here);
    if (lane == 0) parts[warp] = __popc(votes);
    __syncthreads();
    int64_t rank = before + __popc(votes & ((1u << lane) - 1));
    for (int w = 0; w < kThreads / kWarp; ++w) {
      if (w < warp) rank += parts[w];
      before += parts[w];
    }
    if (here && rank < t.wanted) chosen[k - t.wanted + rank] = {t.prefix, i};
    __syncthreads();
  }
  __syncthreads();
}

/// Sorts `n` elements in shared memory, a power of two, by a bitonic network. All threads of the
/// block call it.
template <int kThreads>
__device__ void SortChosen(Ranked* chosen, int n) {
  for (int size = 2; size <= n; size *= 2) {
    for (int distance = size / 2; distance > 0; distance /= 2) {
      for (int i = threadIdx.x; i < n / 2; i += kThreads) {
        const int low = i / distance * 2 * distance + i % distance, high = low + distance;
        const bool ascends = (low & size) == 0;
        if (chosen[high].Before(chosen[low]) == ascends) {
          const Ranked kept = chosen[low];
          chosen[low] = chosen[high];
          chosen[high] = kept;
        }
      }
      __syncthreads();
    }
  }
}

/// A block finds the bits of its row's k-th key, from the top, then takes what comes before it, and
/// sorts that.
template <int kThreads, typename T, typename Index>
__global__ void __launch_bounds__(kThreads) SelectTop(const __grid_constant__ Rows<T, Index> p) {
  __shared__ uint32_t counts[256];
  __shared__ Threshold found;
  __shared__ Ranked chosen[kMostSelected];
  __shared__ unsigned taken, parts[kThreads / kWarp];
  int sorted = 1;
  while (sorted < p.k) sorted *= 2;
  for (int64_t r = blockIdx.x; r < p.rows; r += gridDim.x) {
    const T* const row = p.in + r * p.n;
    if (threadIdx.x == 0) found = {.wanted = p.k};
    __syncthreads();
    for (int shift = kKeyBits<T> - 8; shift >= 0 && !found.all; shift -= 8) {
      Refine<kThreads>(row, p.n, shift, counts, &found);
    }
    Choose<kThreads>(row, p.n, p.k, found, chosen, &taken, parts);
    for (int i = static_cast<int>(p.k) + threadIdx.x; i < sorted; i += kThreads) {
      chosen[i] = {~uint64_t{0}, INT64_MAX};
    }
    __syncthreads();
    SortChosen<kThreads>(chosen, sorted);
    for (int i = threadIdx.x; i < p.k; i += kThreads) p.Write(r, i, chosen[i].place);
    __syncthreads();
  }
}

template <int kThreads, typename T, typename Index>
Status Select(KernelContext& ctx, const Rows<T, Index>& p) {
  constexpr int64_t kMostBlocks = 132 * 16;
  SelectTop<kThreads, T, Index>
      <<<static_cast<int>(std::min(p.rows, kMostBlocks)), kThreads, 0, StreamOf(ctx)>>>(p);
  return LaunchStatus();
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

/// Takes rows whose places were sorted, counted from the first row's beginning.
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

template <typename T, typename Index>
Status TopOfRows(KernelContext& ctx, const Rows<T, Index>& p) {
  if (p.k <= kMostSelected) {
    constexpr int64_t kLong = 4096;
    return p.n < kLong ? Select<kBlockThreads>(ctx, p) : Select<1024>(ctx, p);
  }
  // Keys of 64 bits leave no room for the row: such rows are sorted one by one.
  const int64_t together = kKeyBits<T> == 64 ? 1 : std::max<int64_t>(INT32_MAX / p.n, 1);
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
