// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "data/checkpoint/tensor_bundle.h"
#include "train/feature_columns/weight_rows.h"

// The coefficients of linear models that TensorFlow's feature columns made: LinearClassifier,
// LinearRegressor, the linear part of DNNLinearCombined*, tf.feature_column.linear_model.

namespace tenon {

struct LinearCoefficient {
  std::string column;  // of the features; "(bias)"
  std::string level;   // what the weight is for, see WeightRow; empty for a single number
  std::string kind;    // "bias", or of a WeightRowKind
  int64_t row = 0;     // of the variable
  int64_t output = 0;  // a class, or an element of the label, where there are several
  double weight = 0;
  bool is_float = true;  // whether the variable has no more digits than a float
};

struct LinearCoefficients {
  /// The bias first, then columns by name, with the rows of each in order.
  std::vector<LinearCoefficient> coefficients;
  int64_t outputs = 1;
  /// Sentences: where names come from that are not in the graph, and which rows have none, and why.
  std::vector<std::string> notes;
};

/// Whether a tensor of a checkpoint is the weights, or the bias, of such a model.
bool IsLinearWeights(std::string_view name);
/// Whether a checkpoint has any.
bool HasLinearWeights(const BundleReader& checkpoint);

/// NotFound when the checkpoint has none. Without a graph, whose absence `why_no_graph` explains,
/// rows have numbers for names.
StatusOr<LinearCoefficients> ReadLinearCoefficients(const BundleReader& checkpoint,
                                                    const Graph* graph,
                                                    const std::string& why_no_graph,
                                                    const FindVocabulary& find);

/// A table for a terminal, of at most `most` coefficients, and the notes.
std::string CoefficientTable(const LinearCoefficients& model, size_t most);
/// A line a coefficient, below a header. Weights are written so that they are read back unchanged.
std::string CoefficientCsv(const LinearCoefficients& model);

}  // namespace tenon
