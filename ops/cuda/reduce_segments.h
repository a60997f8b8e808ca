// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cuda/group_rows.h"
#include "ops/reduce_segments.h"

namespace tenon::cuda {

/// Queues: row s of `to` becomes the reduction of the rows of segment s of `from`, in their order,
/// element by element; both are seen as rows of `width` elements. Without rows kMax and kMin are 0
/// if `zero_if_empty`, else the lowest and the highest number. A bool is true when any of its
/// segment is. Unimplemented for kSqrtN.
Status ReduceGrouped(KernelContext& ctx, Reduction reduction, const Tensor& from,
                     const GroupedRows& grouped, int64_t width, bool zero_if_empty, Tensor* to);

}  // namespace tenon::cuda
