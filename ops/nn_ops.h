// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "core/scope.h"

// Graph-building functions for neural networks. Arguments come in TensorFlow's order.

namespace tenon {

// --- Activations, element by element ---

/// log(1 + exp(x))
Output Softplus(const Scope& s, Output features);
/// x / (1 + |x|)
Output Softsign(const Scope& s, Output features);
Output Relu(const Scope& s, Output features);
Output Relu6(const Scope& s, Output features);
Output Elu(const Scope& s, Output features);
Output Selu(const Scope& s, Output features);

// --- Layers ---

/// `value` with bias[c] added to channel c: the last dimension, or the second when `data_format` is
/// "NCHW".
Output BiasAdd(const Scope& s, Output value, Output bias, std::string_view data_format = "NHWC");
/// Sums over all dimensions but the channels.
Output BiasAddGrad(const Scope& s, Output out_backprop, std::string_view data_format = "NHWC");
/// exp(x) / sum(exp(x)) along the last dimension.
Output Softmax(const Scope& s, Output logits);
/// The logarithm of Softmax, accurate where it is small.
Output LogSoftmax(const Scope& s, Output logits);

// --- Losses ---

/// The cross entropy of each row of `labels` (probabilities) with softmax(features): {loss [batch],
/// its gradient by the features [batch, classes]}.
std::vector<Output> SoftmaxCrossEntropyWithLogits(const Scope& s, Output features, Output labels);
/// The same for labels that are class numbers [batch].
std::vector<Output> SparseSoftmaxCrossEntropyWithLogits(const Scope& s, Output features,
                                                        Output labels);
/// Whether each target is among the `k` classes with the largest predictions.
Output InTopK(const Scope& s, Output predictions, Output targets, int64_t k);

}  // namespace tenon
