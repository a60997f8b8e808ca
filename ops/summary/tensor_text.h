// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/tensor/tensor.h"

namespace tenon {

/// The first `max_entries` elements (all when negative) as Assert and Print show them: "1 2 3...",
/// rows of higher ranks in brackets.
std::string SummarizeTensor(const Tensor& t, int64_t max_entries);

/// The elements as StringFormat shows them: "[[1 2]\n [3 4]]", texts in quotes, of each dimension
/// `ends` (all when negative) at both ends and "..." for those between.
std::string FormatTensor(const Tensor& t, int64_t ends);

}  // namespace tenon
