// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/kernel.h"
#include "core/op/shape_inference.h"
#include "ops/sparse/sparse_tensor.h"

// What SparseFillEmptyRows and RaggedFillEmptyRows, which take and give rows differently, share.

namespace tenon {

/// The entries of `in` row by row, with one of the default value, input 3, in the first column of
/// each row without any. Writes outputs 1 to 3: values, which rows were empty, and where each of
/// the values went. InvalidArgument for an index outside the rows.
StatusOr<SparseEntries> FillEmptyRows(KernelContext& ctx, const SparseTensor& in);

/// The gradients of both, of inputs reverse_index_map and grad_values.
Status FillEmptyRowsGradKernel(KernelContext& ctx);

}  // namespace tenon
