// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/scope.h"

// Graph-building functions for summaries: string scalars that hold a serialised Summary message,
// for TensorBoard.

namespace tenon {

/// One value per element; tags and values have the same shape.
Output ScalarSummary(const Scope& s, Output tags, Output values);
/// How the values are distributed. NaN and infinity are errors.
Output HistogramSummary(const Scope& s, Output tag, Output values);
/// All values of the inputs; a tag that occurs twice is an error.
Output MergeSummary(const Scope& s, const std::vector<Output>& inputs);

}  // namespace tenon
