// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "ops/sparse/sparse_tensor.h"

namespace tenon {

/// The three tensors of a sparse tensor.
struct SparseParts {
  Tensor indices, values, shape;
};

/// Calls `take(row, parts)` for each row of `batch` along the first dimension, also those without
/// entries, with its parts without that dimension. InvalidArgument unless `batch` is of rank 2 or
/// more, in bounds and in row-major order. Stops when the kernel is interrupted.
Status ForEachRow(KernelContext& ctx, const SparseTensor& batch,
                  absl::FunctionRef<Status(int64_t row, const SparseParts& parts)> take);

/// Writes as outputs 0 to 2 what `many` are together, sparse tensors of the output's dtype: with
/// `outer` dimensions before their own, tensor i being at place i of these in row-major order, and
/// otherwise the largest size of each. InvalidArgument when ranks or dtypes differ, which is worded
/// for tensors `taken` out of a map or for others.
Status WriteTogether(KernelContext& ctx, const std::vector<SparseParts>& many,
                     absl::Span<const int64_t> outer, bool taken = false);

}  // namespace tenon
