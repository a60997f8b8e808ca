// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/graph/graph.h"
#include "train/feature_columns/weight_row.h"

// The meaning of the rows of a weight matrix, in graphs that TensorFlow's feature columns made. The
// names come from the ops that made the row numbers (the table of a vocabulary, boundaries,
// hashes), which are found by following the graph from the weights back to the features. A row is
// named only where every op on that way is known to leave row numbers as they are.

namespace tenon {

/// A row for each of the `count` rows of a variable, which may be in parts (<variable>/part_0,
/// ...).
WeightRows NameWeightRows(const Graph& graph, const std::string& variable, int64_t count,
                          const FindVocabulary& find);

}  // namespace tenon
