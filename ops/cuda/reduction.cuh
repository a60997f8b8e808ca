// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cuda/element.cuh"
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/merge.cuh"
#include "ops/cuda/reduction_index.h"
#include "ops/math/reducers.h"

// Reductions along any axes by the reducers of ops/math/reducers.h, whose order ReductionIndex
// sets.

namespace tenon::cuda {

/// Sums a tensor of any real dtype along the plan's axes; both are in device memory.
Status SumAlong(KernelContext& ctx, DType type, const ReductionPlan& plan, const void* in,
                void* out);

template <typename R>
struct Merging {
  using Acc = typename R::Acc;
  __device__ Acc operator()(Acc a, Acc b) const { return static_cast<Acc>(R::Merge(a, b)); }
};

/// Writes a result, or a partial one where there are several pieces.
template <typename R, typename T>
__device__ void WriteResult(typename R::Acc acc, const ReductionIndex& index, int64_t item, T* out,
                            typename R::Acc* parts) {
  if (index.pieces > 1) {
    parts[item] = acc;
  } else {
    out[item] = Narrow<T>(R::Finish(acc, index.num_reduced));
  }
}

/// Piece p of result o is item o * pieces + p. kThreads of a block, all of it or a warp or one,
/// take one item after the other.
template <typename R, typename T, int kThreads>
__global__ void __launch_bounds__(kBlockThreads)
    ReduceRows(const T* in, T* out, typename R::Acc* parts,
               const __grid_constant__ ReductionIndex index) {
  using Acc = typename R::Acc;
  constexpr int kGroups = kBlockThreads / kThreads;
  const int64_t items = index.num_kept * index.pieces;
  const int lane = static_cast<int>(threadIdx.x) % kThreads;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kGroups;
  // The threads of a group, which merge, agree on the item.
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kGroups + threadIdx.x / kThreads;
       item < items; item += stride) {
    const int64_t o = item / index.pieces, first = item % index.pieces * index.piece;
    const int64_t last =
        first + index.piece < index.num_reduced ? first + index.piece : index.num_reduced;
    int64_t kept[1], reduced[1];
    index.kept.At(o, kept);
    Acc acc = R::Start();
#pragma unroll 4
    for (int64_t r = first + lane; r < last; r += kThreads) {
      index.reduced.At(r, reduced);
      acc = static_cast<Acc>(WithElement<R>(acc, Widen(in[kept[0] + reduced[0]])));
    }
    if constexpr (kThreads == kWarp) acc = MergeWarp(acc, Merging<R>());
    if constexpr (kThreads > kWarp) {
      __shared__ Acc shared[kThreads / kWarp];
      acc = MergeBlock<kThreads>(acc, shared, Merging<R>());
    }
    if (lane == 0) WriteResult<R>(acc, index, item, out, parts);
  }
}

/// Where neighbouring elements belong to neighbouring results: a block takes a piece of kColumnTile
/// results at a time.
template <typename R, typename T>
__global__ void __launch_bounds__(kColumnTile* kColumnLanes)
    ReduceColumns(const T* in, T* out, typename R::Acc* parts,
                  const __grid_constant__ ReductionIndex index) {
  using Acc = typename R::Acc;
  __shared__ Acc shared[kColumnLanes][kColumnTile];
  const int64_t tiles = (index.num_kept + kColumnTile - 1) / kColumnTile;
  const int column = static_cast<int>(threadIdx.x) % kColumnTile;
  const int lane = static_cast<int>(threadIdx.x) / kColumnTile;
  for (int64_t item = blockIdx.x; item < tiles * index.pieces; item += gridDim.x) {
    const int64_t o = item / index.pieces * kColumnTile + column, piece = item % index.pieces;
    const int64_t first = piece * index.piece;
    const int64_t last =
        first + index.piece < index.num_reduced ? first + index.piece : index.num_reduced;
    Acc acc = R::Start();
    if (o < index.num_kept) {
      int64_t kept[1], reduced[1];
      index.kept.At(o, kept);
#pragma unroll 4
      for (int64_t r = first + lane; r < last; r += kColumnLanes) {
        index.reduced.At(r, reduced);
        acc = static_cast<Acc>(WithElement<R>(acc, Widen(in[kept[0] + reduced[0]])));
      }
    }
    shared[lane][column] = acc;
    __syncthreads();
    if (lane == 0 && o < index.num_kept) {
#pragma unroll
      for (int l = 1; l < kColumnLanes; ++l) acc = Merging<R>()(acc, shared[l][column]);
      WriteResult<R>(acc, index, o * index.pieces + piece, out, parts);
    }
    __syncthreads();
  }
}

/// A warp merges the pieces of each result.
template <typename R, typename T>
__global__ void __launch_bounds__(kBlockThreads)
    MergePieces(const typename R::Acc* parts, T* out, int64_t results, int64_t pieces,
                int64_t num_reduced) {
  using Acc = typename R::Acc;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * (kBlockThreads / kWarp);
  for (int64_t o = (static_cast<int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x) / kWarp;
       o < results; o += stride) {
    Acc acc = R::Start();
    for (int64_t p = lane; p < pieces; p += kWarp) acc = Merging<R>()(acc, parts[o * pieces + p]);
    acc = MergeWarp(acc, Merging<R>());
    if (lane == 0) out[o] = Narrow<T>(R::Finish(acc, num_reduced));
  }
}

/// As many blocks as there are items, if the device can hold so many.
inline int ItemBlocks(int64_t items) {
  return static_cast<int>(std::clamp<int64_t>(items, 1, 132 * 64));
}

template <typename R, typename T>
Status ReduceAlong(KernelContext& ctx, const ReductionPlan& plan, const T* in, T* out) {
  using Acc = typename R::Acc;
  if (plan.num_kept == 0) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const ReductionIndex index, IndexReduction(plan));
  const int64_t items = index.num_kept * index.pieces;
  Tensor temporary;
  Acc* parts = nullptr;
  if (index.pieces > 1) {
    TENON_ASSIGN_OR_RETURN(
        temporary, ctx.AllocateTemp(DType::kUInt8, {items * static_cast<int64_t>(sizeof(Acc))}));
    parts = static_cast<Acc*>(temporary.raw_data());
  }
  const cudaStream_t stream = StreamOf(ctx);
  if (!plan.inner_is_reduced) {
    const int64_t tiles = (index.num_kept + kColumnTile - 1) / kColumnTile;
    ReduceColumns<R, T>
        <<<ItemBlocks(tiles * index.pieces), kColumnTile * kColumnLanes, 0, stream>>>(in, out,
                                                                                      parts, index);
  } else if (index.num_reduced <= kThreadReduces) {
    ReduceRows<R, T, 1><<<GridBlocks(items), kBlockThreads, 0, stream>>>(in, out, parts, index);
  } else if (index.num_reduced <= kWarpReduces) {
    ReduceRows<R, T, kWarp>
        <<<GridBlocks(items * kWarp), kBlockThreads, 0, stream>>>(in, out, parts, index);
  } else {
    ReduceRows<R, T, kBlockThreads>
        <<<ItemBlocks(items), kBlockThreads, 0, stream>>>(in, out, parts, index);
  }
  if (index.pieces > 1) {
    MergePieces<R, T><<<GridBlocks(index.num_kept * kWarp), kBlockThreads, 0, stream>>>(
        parts, out, index.num_kept, index.pieces, index.num_reduced);
  }
  return LaunchStatus();
}

template <template <typename> typename R, typename Types>
Status ReductionKernel(KernelContext& ctx, bool keep_dims) {
  const Tensor& x = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const AxisFlags axes, ReducedAxes(ctx.input(1), x.rank()));
  const ReductionPlan plan = PlanReduction(x.shape(), axes, keep_dims);
  // Nothing is added up. Means and products of one element are that element, too; norms are not.
  if (plan.num_reduced == 1 && !std::is_same_v<R<float>, NormReducer<float>>) {
    return ctx.Return(x.Reshaped(plan.shape));
  }
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, plan.shape));
  return DispatchStatus(x.dtype(), Types(), [&]<typename T>(T) {
    return ReduceAlong<R<T>, T>(ctx, plan, x.data<T>(), y->data<T>());
  });
}

template <template <typename> typename R, typename Types>
void AddReduction(OpRegistry& ops, std::string_view name, Types types) {
  KernelOptions options = {.attrs = {"keep_dims"}};
  if (ops.Get(name).schema().FindAttr("T") != nullptr) options.types = {{"T", DTypesOf(types)}};
  AddKernel(ops, name, ReductionKernel<R, Types>, options);
}

}  // namespace tenon::cuda
