// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/combine_rows.h"
#include "ops/cuda/sorted_rows.h"

namespace tenon::cuda {

/// Queues updates of rows of `value`, each of `width` elements: entry k of the span says which row
/// gets row span.places[k] of `updates`, which with `scalar` is one element for all. Entries of one
/// row count in their order, so that the result is the CPU's; an assigned one is the last. Nothing
/// is changed when the step has failed until then, by an index in `span` for example. kDivide must
/// not meet an integer 0.
Status ChangeRows(KernelContext& ctx, Update update, const RowSpan& span, int64_t width,
                  const Tensor& updates, bool scalar, Tensor* value);

}  // namespace tenon::cuda
