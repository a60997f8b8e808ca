// SPDX-License-Identifier: Apache-2.0
#include <cub/device/device_scan.cuh>

#include "ops/arguments.h"
#include "ops/cuda/device_kind.h"
#include "ops/cuda/group_rows.h"
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/register.h"
#include "ops/cuda/sorted_rows.h"

namespace tenon {
namespace cuda {
namespace {

/// The bits of whole numbers, which are equal where the numbers are.
template <typename T>
struct BitsOf {
  const T* x;
  uint64_t* keys;
  __device__ void operator()(int64_t i) const {
    keys[i] = static_cast<std::make_unsigned_t<T>>(x[i]);
  }
};

/// Elements in the order of their keys, equals in the order of their places.
struct Sorted {
  const uint64_t* keys;
  const uint32_t* places;
  int64_t n;

  __device__ bool IsFirst(int64_t k) const { return k == 0 || keys[k - 1] != keys[k]; }
  __device__ int64_t FirstOf(int64_t k) const { return LowerBound(keys, k, keys[k]); }
  __device__ int64_t EndOf(int64_t k) const {
    return keys[k] == ~uint64_t{0} ? n : k + LowerBound(keys + k, n - k, keys[k] + 1);
  }
};

/// Marks the places where a number is seen for the first time.
struct MarkFirst {
  Sorted sorted;
  int32_t* is_first;
  __device__ void operator()(int64_t k) const { is_first[sorted.places[k]] = sorted.IsFirst(k); }
};

/// Gives each place the number of its equals, which is how many others were seen before their
/// first.
template <typename Index>
struct WriteNumbers {
  Sorted sorted;
  const int32_t* seen;  // up to and with each place
  Index* numbers;
  __device__ void operator()(int64_t k) const {
    const int32_t first = seen[sorted.places[sorted.FirstOf(k)]];
    numbers[sorted.places[k]] = static_cast<Index>(first - 1);
  }
};

template <typename T>
struct WriteDistinct {
  Sorted sorted;
  const int32_t* seen;
  const T* x;
  T* distinct;
  __device__ void operator()(int64_t k) const {
    if (!sorted.IsFirst(k)) return;
    const uint32_t place = sorted.places[k];
    distinct[seen[place] - 1] = x[place];
  }
};

template <typename Index>
struct WriteCounts {
  Sorted sorted;
  const int32_t* seen;
  Index* counts;
  __device__ void operator()(int64_t k) const {
    if (!sorted.IsFirst(k)) return;
    counts[seen[sorted.places[k]] - 1] = static_cast<Index>(sorted.EndOf(k) - k);
  }
};

/// The results that do not depend on how many distinct numbers there are, which the host must know
/// for the others.
struct Numbered {
  SortedPairs sorted;
  Tensor seen;   // int32, [n]
  Tensor count;  // the last of `seen`, a view

  Sorted span() const {
    return {sorted.keys.data<uint64_t>(), sorted.values.data<uint32_t>(), seen.num_elements()};
  }
};

using IndexTypes = TypeList<int32_t, int64_t>;

StatusOr<Numbered> NumberDistinct(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int64_t n = x.num_elements();
  Numbered numbered;
  TENON_ASSIGN_OR_RETURN(Tensor keys, ctx.AllocateTemp(DType::kUInt64, {n}));
  TENON_RETURN_IF_ERROR(DispatchStatus(x.dtype(), IntTypes(), [&]<typename T>(T) {
    return ForEach(ctx, n, BitsOf<T>{x.data<T>(), keys.data<uint64_t>()});
  }));
  const int bits = 8 * static_cast<int>(SizeOf(x.dtype()));
  TENON_ASSIGN_OR_RETURN(numbered.sorted, SortKeys(ctx, keys, bits));
  TENON_ASSIGN_OR_RETURN(Tensor first, ctx.AllocateTemp(DType::kInt32, {n}));
  TENON_ASSIGN_OR_RETURN(numbered.seen, ctx.AllocateTemp(DType::kInt32, {n}));
  TENON_RETURN_IF_ERROR(ForEach(ctx, n, MarkFirst{numbered.span(), first.data<int32_t>()}));
  const auto scan = [&](void* memory, size_t* bytes) {
    return QueueStatus(cub::DeviceScan::InclusiveSum(
        memory, *bytes, static_cast<const int32_t*>(first.raw_data()),
        numbered.seen.data<int32_t>(), static_cast<int32_t>(n), StreamOf(ctx)));
  };
  size_t bytes = 0;
  TENON_RETURN_IF_ERROR(scan(nullptr, &bytes));
  TENON_ASSIGN_OR_RETURN(
      Tensor memory,
      ctx.AllocateTemp(DType::kUInt8, {static_cast<int64_t>(std::max<size_t>(bytes, 1))}));
  TENON_RETURN_IF_ERROR(scan(memory.raw_data(), &bytes));
  TENON_ASSIGN_OR_RETURN(Tensor * idx, ctx.AllocateOutput(1, {n}));
  TENON_RETURN_IF_ERROR(DispatchStatus(idx->dtype(), IndexTypes(), [&]<typename Index>(Index) {
    return ForEach(
        ctx, n,
        WriteNumbers<Index>{numbered.span(), numbered.seen.data<int32_t>(), idx->data<Index>()});
  }));
  numbered.count = numbered.seen.Slice(n - 1, n);
  return numbered;
}

/// Numbers by sorting; once the host knows how many there are, they are written.
class UniqueKernel final : public AsyncKernel {
 public:
  using AsyncKernel::AsyncKernel;

  void ComputeAsync(KernelContext& ctx, Done done) const override {
    const Tensor& x = ctx.input(0);
    if (x.rank() != 1) {
      return done(InvalidArgument("unique expects a 1D vector, found shape ", x.shape()));
    }
    if (x.num_elements() == 0) return done(WriteNothing(ctx));
    StatusOr<Numbered> numbered = NumberDistinct(ctx);
    if (!numbered.ok()) return done(numbered.status());
    ctx.device().queue()->CopyToHost(
        numbered->count, ctx.device_run().id,
        [&ctx, done, numbered = *numbered](StatusOr<Tensor> count) {
          done(count.ok() ? Write(ctx, numbered, count->data<int32_t>()[0]) : count.status());
        });
  }

 private:
  static Status WriteNothing(KernelContext& ctx) {
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      TENON_RETURN_IF_ERROR(ctx.CreateOutput(i, {0}).status());
    }
    return OkStatus();
  }

  static Status Write(KernelContext& ctx, const Numbered& numbered, int64_t count) {
    const Tensor& x = ctx.input(0);
    const int64_t n = x.num_elements();
    const int32_t* const seen = numbered.seen.data<int32_t>();
    TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.CreateOutput(0, {count}));
    TENON_RETURN_IF_ERROR(DispatchStatus(x.dtype(), IntTypes(), [&]<typename T>(T) {
      return ForEach(ctx, n, WriteDistinct<T>{numbered.span(), seen, x.data<T>(), y->data<T>()});
    }));
    if (ctx.num_outputs() < 3) return OkStatus();
    TENON_ASSIGN_OR_RETURN(Tensor * counts, ctx.CreateOutput(2, {count}));
    return DispatchStatus(counts->dtype(), IndexTypes(), [&]<typename Index>(Index) {
      return ForEach(ctx, n, WriteCounts<Index>{numbered.span(), seen, counts->data<Index>()});
    });
  }
};

}  // namespace
}  // namespace cuda

void RegisterCudaUnique(OpRegistry& ops) {
  for (const char* const name : {"Unique", "UniqueWithCounts"}) {
    ops.Get(name).Kernel<cuda::UniqueKernel>(kCuda, {.types = {{"T", DTypesOf(IntTypes())}}});
  }
}

}  // namespace tenon
