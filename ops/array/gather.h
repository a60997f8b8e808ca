// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/status.h"
#include "core/gradient/gradients.h"
#include "core/graph/output.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace tenon {

/// The slices of `params` along `axis` (0 <= axis < rank) that `indices` name; the first
/// `batch_dims` dimensions of both are walked together. The result has the shape
/// params[:axis] + indices[batch_dims:] + params[axis + 1:]. InvalidArgument
/// "indices[0] = 5 is not in [0, 2)".
StatusOr<Tensor> GatherSlices(const Tensor& params, const Tensor& indices, int axis,
                              int batch_dims);

/// How slices are gathered, with the params seen as [batches, outer, limit, inner], the indices as
/// [batches, count] and the result as [batches, outer, count, inner].
struct GatherPlan {
  Shape shape;                                         // of the result
  int64_t outer = 0, limit = 0, inner = 0, count = 0;  // where the result has elements
};
/// The plan of GatherSlices. InvalidArgument for shapes that do not fit.
StatusOr<GatherPlan> PlanGather(const Shape& params, const Shape& indices, int axis,
                                int batch_dims);

/// The slices of `params` that the tuples along the last dimension of `indices` name: the result
/// has the shape indices[:-1] + params[depth:], depth being their length. InvalidArgument
/// "indices[0] = [5] does not index into param shape [2]".
StatusOr<Tensor> GatherTuples(const Tensor& params, const Tensor& indices);
/// InvalidArgument for params of these shapes from which GatherTuples cannot gather.
Status CheckGatheredParams(const Shape& params, const Shape& indices);
/// Its shape as far as it can be told.
StatusOr<PartialShape> GatherTuplesShape(const PartialShape& params, const PartialShape& indices);

/// The attribute batch_dims, which counts from the end when it is negative; InvalidArgument unless
/// it is one of 0 .. indices_rank then.
StatusOr<int> NormalizeBatchDims(int64_t batch_dims, int indices_rank);

/// InvalidArgument unless a variable of this shape can be gathered from along `axis`.
Status CheckGatherAxis(const Shape& params, int axis);

/// The gradient of the params of a gather along their first dimension. `shape` is that of the
/// params, of the dtype of `indices`.
IndexedSlices GatheredSlices(const Output& shape, Output indices, Output dy);

/// The same along `axis`, or for each batch, dense: the slices of `dy` added up where
/// they came from.
StatusOr<Output> GatherGradient(Output shape, Output indices, Output dy, int64_t axis,
                                int64_t batch_dims);

}  // namespace tenon
