// SPDX-License-Identifier: Apache-2.0
#include "ops/array/strided_copy.h"

#include "ops/cuda/copy_plan.h"
#include "ops/cuda/element.cuh"
#include "ops/cuda/join_plan.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/mover.h"
#include "ops/elements.h"

namespace tenon::cuda {
namespace {

template <typename T>
struct CopyElement {
  const T* from;
  T* to;
  StridedIndex<2> index;
  __device__ void operator()(int64_t i) const {
    int64_t at[2];
    index.At(i, at);
    to[at[1]] = from[at[0]];
  }
};

constexpr int kTileLanes = 8;

/// What copies planes by tiles, so that both sides' neighbours are read and written together.
template <typename T>
struct TiledPlanes {
  const T* from;
  T* to;
  StridedIndex<2> planes;
  int64_t num_planes;
  CopyAxis first, second;
  int64_t tiles_along_first, tiles_along_second;
};

template <typename T>
__global__ void __launch_bounds__(kTile* kTileLanes)
    CopyTiles(const __grid_constant__ TiledPlanes<T> p) {
  __shared__ T tile[kTile][kTile + 1];
  const int column = static_cast<int>(threadIdx.x) % kTile;
  const int lane = static_cast<int>(threadIdx.x) / kTile;
  const int64_t per_plane = p.tiles_along_first * p.tiles_along_second;
  for (int64_t t = blockIdx.x; t < per_plane * p.num_planes; t += gridDim.x) {
    int64_t plane[2];
    p.planes.At(t / per_plane, plane);
    const int64_t in_plane = t % per_plane;
    const int64_t i0 = in_plane % p.tiles_along_first * kTile;
    const int64_t j0 = in_plane / p.tiles_along_first * kTile;
#pragma unroll
    for (int64_t row = lane; row < kTile; row += kTileLanes) {
      const int64_t i = i0 + column, j = j0 + row;
      if (i < p.first.size && j < p.second.size) {
        tile[row][column] = p.from[plane[0] + i + j * p.second.from];
      }
    }
    __syncthreads();
#pragma unroll
    for (int64_t row = lane; row < kTile; row += kTileLanes) {
      const int64_t i = i0 + row, j = j0 + column;
      if (i < p.first.size && j < p.second.size) {
        p.to[plane[1] + i * p.first.to + j] = tile[column][row];
      }
    }
    __syncthreads();
  }
}

/// A type of that many bytes.
template <typename Fn>
void DispatchWidth(int64_t bytes, Fn&& fn) {
  const DType types[] = {DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64,
                         DType::kComplex128};
  for (const DType type : types) {
    if (static_cast<int64_t>(SizeOf(type)) == bytes) return DispatchBytes(type, fn);
  }
}

Status CopyRun(KernelContext& ctx, const void* from, void* to, int64_t bytes) {
  if (bytes == 0) return OkStatus();
  return QueueStatus(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, StreamOf(ctx)));
}

Status Copy(KernelContext& ctx, const Tensor& from, const StridedView& source, Tensor* to,
            const StridedView& target, absl::Span<const int64_t> dims) {
  const auto size = static_cast<int64_t>(SizeOf(from.dtype()));
  TENON_ASSIGN_OR_RETURN(
      const CopyPlan plan,
      PlanCopy(size, reinterpret_cast<uintptr_t>(from.raw_data()),
               reinterpret_cast<uintptr_t>(to->raw_data()), source, target, dims));
  if (plan.kind == CopyPlan::Kind::kNothing) return OkStatus();
  const char* first = static_cast<const char*>(from.raw_data()) + plan.from;
  char* out = static_cast<char*>(to->raw_data()) + plan.to;
  if (plan.kind == CopyPlan::Kind::kRun) return CopyRun(ctx, first, out, plan.count * plan.bytes);
  Status status;
  DispatchWidth(plan.bytes, [&]<typename T>(T) {
    const T* in = reinterpret_cast<const T*>(first);
    T* result = reinterpret_cast<T*>(out);
    if (plan.kind == CopyPlan::Kind::kElements) {
      static_cast<void>(status = ForEach(ctx, plan.count, CopyElement<T>{in, result, plan.index}));
      return;
    }
    const TiledPlanes<T> planes{in,
                                result,
                                plan.index,
                                plan.count,
                                plan.first,
                                plan.second,
                                plan.tiles_along_first(),
                                plan.tiles_along_second()};
    const int64_t tiles = plan.count * planes.tiles_along_first * planes.tiles_along_second;
    const int blocks = static_cast<int>(std::min<int64_t>(tiles, 132 * 32));
    CopyTiles<T><<<blocks, kTile * kTileLanes, 0, StreamOf(ctx)>>>(planes);
    static_cast<void>(status = LaunchStatus());
  });
  return status;
}

Status CopyNeighbours(KernelContext& ctx, const Tensor& from, int64_t i, Tensor* to, int64_t j,
                      int64_t count) {
  const auto size = static_cast<int64_t>(SizeOf(from.dtype()));
  return CopyRun(ctx, ElementAt(from, i), ElementAt(*to, j), count * size);
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    JoinElements(const __grid_constant__ JoinPlan plan, int64_t n, T* to) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += stride) {
    const JoinPlan::Place place = plan.At(i);
    to[place.to] = reinterpret_cast<const T*>(plan.arrays[place.array])[place.from];
  }
}

Status Join(KernelContext& ctx, absl::Span<const JoinedArray> arrays, int64_t rows, Tensor* to) {
  const auto size = static_cast<int64_t>(SizeOf(to->dtype()));
  std::vector<JoinedBytes> joined;
  for (const auto& [array, run] : arrays) {
    if (run > 0) joined.push_back({static_cast<const char*>(array->raw_data()), run * size});
  }
  if (joined.size() == 1) return CopyRun(ctx, joined[0].address, to->raw_data(), to->num_bytes());
  const auto address = reinterpret_cast<uintptr_t>(to->raw_data());
  for (const JoinPlan& plan : PlanJoin(size, joined, rows, address)) {
    Status status;
    DispatchWidth(plan.bytes, [&]<typename T>(T) {
      const int64_t n = plan.num_elements();
      JoinElements<T><<<GridBlocks(n), kBlockThreads, 0, StreamOf(ctx)>>>(
          plan, n, static_cast<T*>(to->raw_data()));
      status.Update(LaunchStatus());
    });
    TENON_RETURN_IF_ERROR(status);
  }
  return OkStatus();
}

Status Zero(KernelContext& ctx, Tensor* to) {
  if (to->num_elements() == 0) return OkStatus();
  return QueueStatus(cudaMemsetAsync(to->raw_data(), 0, to->num_bytes(), StreamOf(ctx)));
}

template <typename T>
struct FillElement {
  T* to;
  T value;
  __device__ void operator()(int64_t i) const { to[i] = value; }
};

Status Fill(KernelContext& ctx, const Tensor& value, Tensor* to) {
  if (!value.IsHostMemory()) return Copy(ctx, value, {0, {0}}, to, {0, {1}}, {to->num_elements()});
  Status status;
  DispatchBytes(to->dtype(), [&]<typename T>(T) {
    FillElement<T> fill{static_cast<T*>(to->raw_data()), {}};
    std::memcpy(&fill.value, value.raw_data(), sizeof(T));
    static_cast<void>(status = ForEach(ctx, to->num_elements(), fill));
  });
  return status;
}

}  // namespace

const Mover kDeviceMover = {
    .copy = Copy, .copy_run = CopyNeighbours, .join = Join, .zero = Zero, .fill = Fill};

}  // namespace tenon::cuda
