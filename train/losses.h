// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/build/building.h"

// Losses of a model's predictions, with weights and the ways to make one number of many
// (tf.compat.v1.losses).
//
//   Output loss = losses::SoftmaxCrossEntropy(one_hot_labels, logits);
//   Node* train = Adam(0.001).Minimize(losses::GetTotalLoss());
//
// Labels and predictions have one shape, except where it is said. All is computed in float, in
// double when the predictions are double, as TensorFlow does for all but double. Each loss goes
// into the graph's collection "losses". The mistake is InvalidArgument for shapes that do not fit.

namespace tenon::losses {

/// How one number is made of the weighted losses of all elements.
enum class Reduction {
  kNone,                 // none: the weighted losses themselves
  kSum,                  // their sum
  kMean,                 // the sum divided by that of the weights
  kSumOverBatchSize,     // the sum divided by the number of elements
  kSumByNonzeroWeights,  // the sum divided by the number of elements with a weight that is not 0
};

struct LossOptions {
  /// A number, or a tensor of the rank of the losses in which each dimension is 1 or as large.
  Input weights = 1.0;
  Reduction reduction = Reduction::kSumByNonzeroWeights;
  /// The collection of the graph that the loss goes into; none when empty.
  std::string loss_collection = "losses";
  /// The scope of its nodes; by default TensorFlow's.
  std::string name = {};
  std::source_location location = std::source_location::current();
};

/// Losses that were computed otherwise, with weights, as one number (compute_weighted_loss); of the
/// dtype of `values`. 0 where the divisor is 0.
Output ComputeWeightedLoss(const Output& values, const LossOptions& options = {});

/// |predictions - labels| (absolute_difference).
Output AbsoluteDifference(const Input& labels, const Output& predictions,
                          const LossOptions& options = {});
/// 1 - the dot product along `axis`, which stays as a dimension of 1, of vectors that have length 1
/// already (cosine_distance).
Output CosineDistance(const Input& labels, const Output& predictions, int axis,
                      const LossOptions& options = {});
/// max(0, 1 - logit) where the label is 1, max(0, 1 + logit) where it is 0 (hinge_loss).
Output HingeLoss(const Input& labels, const Output& logits, const LossOptions& options = {});
/// (predictions - labels)^2 (mean_squared_error).
Output MeanSquaredError(const Input& labels, const Output& predictions,
                        const LossOptions& options = {});

struct HuberLossOptions {
  Input weights = 1.0;
  /// Where it becomes linear.
  double delta = 1.0;
  Reduction reduction = Reduction::kSumByNonzeroWeights;  // these as LossOptions has them
  std::string loss_collection = "losses";
  std::string name = {};
  std::source_location location = std::source_location::current();
};
/// Half the squared error up to delta, then linear: delta * (|error| - delta / 2) (huber_loss).
Output HuberLoss(const Input& labels, const Output& predictions,
                 const HuberLossOptions& options = {});

struct LogLossOptions {
  Input weights = 1.0;
  /// Added within the logarithms.
  double epsilon = 1e-7;
  Reduction reduction = Reduction::kSumByNonzeroWeights;  // these as LossOptions has them
  std::string loss_collection = "losses";
  std::string name = {};
  std::source_location location = std::source_location::current();
};
/// -labels * log(predictions) - (1 - labels) * log(1 - predictions), of probabilities (log_loss).
Output LogLoss(const Input& labels, const Output& predictions, const LogLossOptions& options = {});

struct MeanPairwiseSquaredErrorOptions {
  /// A number, or [batch, 1, ..., 1].
  Input weights = 1.0;
  std::string loss_collection = "losses";  // these as LossOptions has them
  std::string name = {};
  std::source_location location = std::source_location::current();
};
/// For each row of the batch the mean of ((p_i - p_j) - (l_i - l_j))^2 over its pairs of elements,
/// weighted and added up (mean_pairwise_squared_error). The rank must be known.
Output MeanPairwiseSquaredError(const Input& labels, const Output& predictions,
                                const MeanPairwiseSquaredErrorOptions& options = {});

struct CrossEntropyOptions {
  Input weights = 1.0;
  /// Moves labels so far towards what is the same for all classes: 1/2 for sigmoids, 1/classes for
  /// a softmax.
  double label_smoothing = 0;
  Reduction reduction = Reduction::kSumByNonzeroWeights;  // these as LossOptions has them
  std::string loss_collection = "losses";
  std::string name = {};
  std::source_location location = std::source_location::current();
};
/// The cross entropy of each element by itself (sigmoid_cross_entropy).
Output SigmoidCrossEntropy(const Input& multi_class_labels, const Output& logits,
                           const CrossEntropyOptions& options = {});
/// The cross entropy of the classes along the last dimension, which the losses do not have
/// (softmax_cross_entropy). No gradient flows to the labels.
Output SoftmaxCrossEntropy(const Input& onehot_labels, const Output& logits,
                           const CrossEntropyOptions& options = {});
/// The same with the number of the right class as the label: int32 or int64 of the shape of the
/// logits without the last dimension, or with a last dimension of 1, which weights may have too
/// (sparse_softmax_cross_entropy).
Output SparseSoftmaxCrossEntropy(const Output& labels, const Output& logits,
                                 const LossOptions& options = {});

/// Adds a loss of the program's own to the collection (add_loss).
void AddLoss(const Output& loss, const std::string& loss_collection = "losses");
/// The losses of the collection, those whose names begin with `scope` (get_losses).
std::vector<Output> GetLosses(const std::string& scope = {},
                              const std::string& loss_collection = "losses");
/// The sum of what regularizers have added to the collection "regularization_losses"; a float 0
/// when that is empty (get_regularization_loss).
Output GetRegularizationLoss(const OpOptions& options = {.name = "total_regularization_loss"});

struct TotalLossOptions {
  bool add_regularization_losses = true;
  /// The beginning of the names of the losses that count; empty: all do.
  std::string scope = {};
  std::string name = "total_loss";
  std::source_location location = std::source_location::current();
};
/// The sum of all losses that the graph knows so far (get_total_loss). InvalidArgument when there
/// is none.
Output GetTotalLoss(const TotalLossOptions& options = {});

}  // namespace tenon::losses
