// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/status.h"
#include "core/tensor.h"

namespace tenon {

/// The slices of `params` along `axis` (0 <= axis < rank) that `indices` name; the first
/// `batch_dims` dimensions of both are walked together. The result has the shape
/// params[:axis] + indices[batch_dims:] + params[axis + 1:]. InvalidArgument
/// "indices[0] = 5 is not in [0, 2)".
StatusOr<Tensor> GatherSlices(const Tensor& params, const Tensor& indices, int axis,
                              int batch_dims);

/// The attribute batch_dims, which counts from the end when it is negative; InvalidArgument unless
/// it is one of 0 .. indices_rank then.
StatusOr<int> NormalizeBatchDims(int64_t batch_dims, int indices_rank);

}  // namespace tenon
