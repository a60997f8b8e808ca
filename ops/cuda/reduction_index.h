// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "ops/cuda/strided_index.h"
#include "ops/math/reduction.h"

namespace tenon::cuda {

/// How a reduction is shared out among threads, which depends on the shape alone: so its result is
/// the same in every run. What is reduced to one element is cut into `pieces` of `piece` elements
/// (the last may be shorter), each of which a group of threads reduces; another pass then reduces
/// the partial results.
struct ReductionIndex {
  StridedIndex<1> kept, reduced;
  int64_t num_kept = 0, num_reduced = 0;
  int64_t pieces = 1, piece = 0;
};

/// Columns of results that a block makes when neighbouring elements belong to different results.
inline constexpr int64_t kColumnTile = 32;
/// Threads that share a piece then.
inline constexpr int64_t kColumnLanes = 8;
/// What is reduced by a thread alone, and by the threads of a warp.
inline constexpr int64_t kThreadReduces = 8;
inline constexpr int64_t kWarpReduces = 1024;
/// Blocks that fill a device.
inline constexpr int64_t kEnoughBlocks = 1024;

/// Unimplemented for plans with more dimensions than a StridedIndex holds.
inline StatusOr<ReductionIndex> IndexReduction(const ReductionPlan& plan) {
  const auto index = [](const ReductionPlan::Dims& dims,
                        int64_t count) -> StatusOr<StridedIndex<1>> {
    TENON_RETURN_IF_ERROR(CheckIndexRank(dims.size()));
    absl::InlinedVector<StridedDim<1>, 4> walked;
    for (const ReductionPlan::Dim& d : dims) walked.push_back({d.size, {d.stride}});
    if (walked.empty()) walked.push_back({1, {0}});
    return StridedIndex<1>(walked, count);
  };
  ReductionIndex result;
  result.num_kept = plan.num_kept;
  result.num_reduced = plan.num_reduced;
  TENON_ASSIGN_OR_RETURN(result.kept, index(plan.kept, plan.num_kept));
  TENON_ASSIGN_OR_RETURN(result.reduced, index(plan.reduced, plan.num_reduced));
  const auto parts = [](int64_t n, int64_t part) { return (n + part - 1) / part; };
  // Few results of many elements each do not fill the device.
  const int64_t blocks = plan.inner_is_reduced ? plan.num_kept : parts(plan.num_kept, kColumnTile);
  const int64_t least = plan.inner_is_reduced ? 4 * kWarpReduces : 16 * kColumnLanes;
  if (blocks > 0 && blocks < kEnoughBlocks && plan.num_reduced > least) {
    result.pieces = std::min(parts(plan.num_reduced, least), parts(kEnoughBlocks, blocks));
  }
  result.piece = parts(plan.num_reduced, result.pieces);
  return result;
}

}  // namespace tenon::cuda
