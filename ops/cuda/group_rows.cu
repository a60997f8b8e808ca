// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/group_rows.h"

#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "ops/cuda/launch.cuh"

namespace tenon::cuda {
namespace {

struct Number {
  uint32_t* out;
  __device__ void operator()(int64_t i) const { out[i] = static_cast<uint32_t>(i); }
};

/// Where the keys of segment `s` begin among `n` that are sorted.
struct FindStart {
  const uint64_t* keys;
  int64_t n;
  int64_t* starts;
  __device__ void operator()(int64_t s) const {
    int64_t low = 0, high = n;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (keys[middle] < static_cast<uint64_t>(s)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    starts[s] = low;
  }
};

}  // namespace

StatusOr<SortedPairs> SortKeys(KernelContext& ctx, const Tensor& keys, int bits) {
  const int64_t n = keys.num_elements();
  if (n > INT32_MAX) return Unimplemented("sorting more than ", INT32_MAX, " keys, found ", n);
  SortedPairs sorted;
  TENON_ASSIGN_OR_RETURN(sorted.keys, ctx.AllocateTemp(DType::kUInt64, {n}));
  TENON_ASSIGN_OR_RETURN(sorted.values, ctx.AllocateTemp(DType::kUInt32, {n}));
  if (n == 0) return sorted;
  TENON_ASSIGN_OR_RETURN(Tensor numbers, ctx.AllocateTemp(DType::kUInt32, {n}));
  TENON_RETURN_IF_ERROR(ForEach(ctx, n, Number{numbers.data<uint32_t>()}));
  const auto sort = [&](void* memory, size_t* bytes) {
    return QueueStatus(cub::DeviceRadixSort::SortPairs(
        memory, *bytes, keys.data<uint64_t>(), sorted.keys.data<uint64_t>(),
        static_cast<const uint32_t*>(numbers.raw_data()), sorted.values.data<uint32_t>(),
        static_cast<int32_t>(n), 0, bits, StreamOf(ctx)));
  };
  size_t bytes = 0;
  TENON_RETURN_IF_ERROR(sort(nullptr, &bytes));
  TENON_ASSIGN_OR_RETURN(
      Tensor memory,
      ctx.AllocateTemp(DType::kUInt8, {static_cast<int64_t>(std::max<size_t>(bytes, 1))}));
  TENON_RETURN_IF_ERROR(sort(memory.raw_data(), &bytes));
  return sorted;
}

StatusOr<GroupedRows> GroupRows(KernelContext& ctx, const Tensor& keys, int64_t segments) {
  const int bits = std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(segments))));
  TENON_ASSIGN_OR_RETURN(SortedPairs sorted, SortKeys(ctx, keys, bits));
  GroupedRows grouped;
  TENON_ASSIGN_OR_RETURN(grouped.starts, ctx.AllocateTemp(DType::kInt64, {segments + 1}));
  TENON_RETURN_IF_ERROR(ForEach(ctx, segments + 1,
                                FindStart{sorted.keys.data<uint64_t>(), keys.num_elements(),
                                          grouped.starts.data<int64_t>()}));
  grouped.rows = std::move(sorted.values);
  return grouped;
}

}  // namespace tenon::cuda
