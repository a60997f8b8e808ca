// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/op/shape_inference.h"
#include "core/tensor/tensor.h"

namespace tenon {

/// The scalar `size`, how many bins there are; InvalidArgument when it is negative.
StatusOr<int64_t> ReadBins(const Tensor& size);
/// For shape functions: the same of an input, kUnknownDim if it is no constant.
StatusOr<int64_t> KnownBins(const ShapeContext& c, int input);

/// Counts in `counts`, seen as rows of `bins`, how often each number below `bins` is in `values`:
/// value i in row rows[i], all in row 0 when there are none. Each counts what `weights` says, 1
/// when that is empty; with `binary` a count is 1 or 0. InvalidArgument for negative values, and
/// when there are not as many weights.
Status CountBins(const Tensor& values, const Tensor& weights, absl::Span<const int64_t> rows,
                 int64_t bins, bool binary, Tensor* counts);

}  // namespace tenon
