// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "core/graph/graph.h"
#include "train/feature_columns/weight_row.h"

// The ops of TensorFlow's feature columns between a feature and its weights, as far as they make
// row numbers or hand them on.

namespace tenon {

/// The use that an op makes of weights that come in at `input`.
enum class ReaderKind { kHandsOn, kGathers, kMultiplies, kOther };
ReaderKind ReaderKindOf(const Node& node, int input);

/// The row numbers of which an indicator matrix was made; nothing for another matrix.
std::optional<Endpoint> RowNumbersOfIndicator(const Endpoint& matrix);

/// Names for rows 0 to count - 1, from what made these row numbers.
WeightRows NameRowNumbers(const Endpoint& numbers, int64_t count, const FindVocabulary& find);

}  // namespace tenon
