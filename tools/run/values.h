// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace tenon::tools {

/// The tensor of `dtype` that a literal stands for: a number, true, false (also True and False, 1
/// and 0), a quoted text, or nested lists of them in brackets. InvalidArgument says what was found
/// and what was wanted.
StatusOr<Tensor> ReadLiteral(std::string_view text, DType dtype);

/// The same numbers as another dtype, as a feed of TensorFlow's client becomes it: real numbers are
/// rounded, integers kept, true and false are 1 and 0. InvalidArgument for an integer that the
/// dtype cannot hold, a number that is none where integers are wanted, and what are no numbers.
StatusOr<Tensor> ConvertNumbers(const Tensor& value, DType dtype);

}  // namespace tenon::tools
