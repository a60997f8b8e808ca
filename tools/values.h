// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/dtype.h"
#include "core/shape.h"
#include "core/status.h"
#include "core/tensor.h"

namespace tenon::tools {

/// The value of a --feed: FILE.npy, FILE.npz:KEY, or a literal: a number, true, false, a quoted
/// text, or nested lists of them in brackets. A literal becomes a tensor of `dtype`; a file must
/// hold that dtype already. InvalidArgument says what was found and what was wanted.
StatusOr<Tensor> ReadValue(std::string_view text, DType dtype);

}  // namespace tenon::tools
