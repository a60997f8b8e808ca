// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/gradient/gradient.h"

namespace tenon {

/// A gradient of no rows of `whole`, a tensor or the handle of a variable, there where `whole` is
/// alive: values of `dtype`, and indices of `index_dtype`.
IndexedSlices NoRows(const Output& whole, DType dtype, DType index_dtype);

/// The values of rows of `whole`, whose shape they are told to have as far as it is known.
Output WithKnownShape(const Output& rows, const Output& whole);

/// All rows of all of `parts`, which are gradients of rows of one tensor; with indices of the dtype
/// of the first.
IndexedSlices JoinRows(const std::vector<Gradient>& parts);

/// The rows that came: `parts` are those of branches, of which one is taken.
IndexedSlices MergeRows(const std::vector<IndexedSlices>& parts);

}  // namespace tenon
