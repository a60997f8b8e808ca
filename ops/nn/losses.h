// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/status.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

// What losses demand of their inputs, on every device.

namespace tenon {

/// The shape [rows, classes] to which logits and labels broadcast; InvalidArgument unless it is of
/// rank 2.
StatusOr<Shape> CrossEntropySizes(const Shape& logits, const Shape& labels);

/// InvalidArgument unless `matrix` is one and `vector` has an element for each of its rows.
Status CheckRows(const Tensor& matrix, std::string_view what, const Tensor& vector,
                 std::string_view vector_what);

/// InvalidArgument unless logits are a matrix with classes and labels a vector, one a row.
Status CheckLabelledLogits(const Tensor& logits, const Tensor& labels);

/// The error of a label that is none of the classes; `others` says more of the labels.
Status LabelOutOfRange(int64_t label, int64_t classes, std::string_view others);

}  // namespace tenon
