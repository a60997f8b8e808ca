// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/status.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace tenon {

/// The shape of the k largest of each row of an input of this shape; InvalidArgument for a k that
/// it does not have.
StatusOr<Shape> TopKResult(const Shape& in, int64_t k);

/// The error of rows of `n` whose indices an `index_type` does not hold.
Status TooLongFor(DType index_type, int64_t n);

}  // namespace tenon
