// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace tenon {

/// How an element changes the one that is there. A text is added by appending it.
enum class Update { kAssign, kAdd, kSubtract, kMultiply, kDivide, kMin, kMax };

/// Updates row rows[i] of `to` with row i of `from` for each i in order, so that rows may come
/// several times. Both are seen as rows of `width` elements; a scalar `from` stands for every
/// element of the rows. Negative entries of `rows` are passed over; the others must be rows of
/// `to`, and the dtypes equal. Stops when the kernel is interrupted. Unimplemented for dtypes that
/// have no such update. kDivide rounds quotients of integers towards zero, which must not be
/// divided by 0: CheckDivisors.
Status CombineRows(Update update, const Tensor& from, absl::Span<const int64_t> rows, int64_t width,
                   Tensor* to);

/// InvalidArgument when an element of `from` is an integer 0.
Status CheckDivisors(const Tensor& from);

}  // namespace tenon
