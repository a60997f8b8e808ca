// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace tenon::tools {

/// Appends the elements of row `row` of a tensor, or of all of a scalar, as fields of a line with
/// `delimiter` between them, quoted as in CSV (RFC 4180). Numbers have as many digits as tell them
/// from all others. InvalidArgument for dtypes without a text form.
Status AppendRow(const Tensor& tensor, int64_t row, char delimiter, std::string* line);

/// Appends a tensor as JSON: nested lists, or one value. What is no number is null, text that is no
/// UTF-8 {"b64": "..."}, a complex number a list of two. InvalidArgument as above.
Status AppendJson(const Tensor& tensor, std::string* text);

}  // namespace tenon::tools
