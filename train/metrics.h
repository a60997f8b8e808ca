// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/building.h"

// Metrics over many steps (tf.compat.v1.metrics): each adds up what it counts in local variables,
// which LocalVariablesInitializer sets to 0 before an evaluation.
//
//   Metric accuracy = metrics::Accuracy(labels, ArgMax(logits, 1));
//   Node* init = LocalVariablesInitializer();
//   ...  // init; then for each batch accuracy.update; then accuracy.value
//
// All have weights: by default 1 each; a number, or a tensor of the rank of the predictions in
// which each dimension is 1 or as large. A last dimension of 1 that only one of labels, predictions
// and weights has counts for nothing. The mistake is InvalidArgument for shapes that do not fit.
// Variables have TensorFlow's names ["accuracy/total", "accuracy/count"], in the scope that was
// entered.

namespace tenon {

struct Metric {
  Output value;   // of all that has been counted
  Output update;  // counts what this step has, and is the value after that unless said otherwise
};

namespace metrics {

struct MetricOptions {
  Input weights = {};
  /// The scope of its nodes and variables; by default TensorFlow's.
  std::string name = {};
  std::source_location location = std::source_location::current();
};

/// The mean of the elements; float, as all metrics are (mean).
Metric Mean(const Output& values, const MetricOptions& options = {});
/// The mean of each element by itself, of the shape of `values`, which must be known (mean_tensor).
Metric MeanTensor(const Output& values, const MetricOptions& options = {});
/// How many of the predictions equal their labels (accuracy).
Metric Accuracy(const Output& labels, const Output& predictions, const MetricOptions& options = {});
/// The mean of |labels - predictions| (mean_absolute_error).
Metric MeanAbsoluteError(const Output& labels, const Output& predictions,
                         const MetricOptions& options = {});
/// The mean of (labels - predictions)^2 (mean_squared_error).
Metric MeanSquaredError(const Output& labels, const Output& predictions,
                        const MetricOptions& options = {});
/// The root of that (root_mean_squared_error).
Metric RootMeanSquaredError(const Output& labels, const Output& predictions,
                            const MetricOptions& options = {});
/// The mean of |labels - predictions| / normalizer, 0 where that is 0 (mean_relative_error).
Metric MeanRelativeError(const Output& labels, const Output& predictions, const Output& normalizer,
                         const MetricOptions& options = {});
/// How many values are below the threshold (percentage_below).
Metric PercentageBelow(const Output& values, const Input& threshold,
                       const MetricOptions& options = {});
/// How often the right class, `targets` [batch], is among the `k` of the largest `predictions`
/// [batch, classes] (the mean of tf.nn.in_top_k).
Metric InTopK(const Output& targets, const Output& predictions, int64_t k,
              const MetricOptions& options = {});
/// The mean over the classes of how many labels of a class are predicted; 0 for a class that never
/// came. The update is the accuracy of each class (mean_per_class_accuracy).
Metric MeanPerClassAccuracy(const Output& labels, const Output& predictions, int64_t num_classes,
                            const MetricOptions& options = {});
/// The mean over the classes that came of intersection / union: where both label and prediction
/// are the class, and where either is. The update is the confusion matrix, double
/// [num_classes, num_classes] (mean_iou).
Metric MeanIoU(const Output& labels, const Output& predictions, int64_t num_classes,
               const MetricOptions& options = {});

/// How many, or what weight, of each kind there are; labels and predictions are truth values,
/// numbers other than 0 being true (true_positives and so on).
Metric TruePositives(const Output& labels, const Output& predictions,
                     const MetricOptions& options = {});
Metric FalsePositives(const Output& labels, const Output& predictions,
                      const MetricOptions& options = {});
Metric TrueNegatives(const Output& labels, const Output& predictions,
                     const MetricOptions& options = {});
Metric FalseNegatives(const Output& labels, const Output& predictions,
                      const MetricOptions& options = {});
/// True positives of all that are predicted to be true; 0 when none is (precision).
Metric Precision(const Output& labels, const Output& predictions,
                 const MetricOptions& options = {});
/// True positives of all that are true; 0 when none is (recall).
Metric Recall(const Output& labels, const Output& predictions, const MetricOptions& options = {});

/// The same for each threshold, where a prediction, a number in [0, 1], is true when it is above
/// the threshold; others fail the step. [thresholds] (true_positives_at_thresholds and so on).
Metric TruePositivesAtThresholds(const Output& labels, const Output& predictions,
                                 const std::vector<float>& thresholds,
                                 const MetricOptions& options = {});
Metric FalsePositivesAtThresholds(const Output& labels, const Output& predictions,
                                  const std::vector<float>& thresholds,
                                  const MetricOptions& options = {});
Metric TrueNegativesAtThresholds(const Output& labels, const Output& predictions,
                                 const std::vector<float>& thresholds,
                                 const MetricOptions& options = {});
Metric FalseNegativesAtThresholds(const Output& labels, const Output& predictions,
                                  const std::vector<float>& thresholds,
                                  const MetricOptions& options = {});
Metric PrecisionAtThresholds(const Output& labels, const Output& predictions,
                             const std::vector<float>& thresholds,
                             const MetricOptions& options = {});
Metric RecallAtThresholds(const Output& labels, const Output& predictions,
                          const std::vector<float>& thresholds, const MetricOptions& options = {});

enum class Curve { kRoc, kPr };
enum class SummationMethod {
  kTrapezoidal,
  kCarefulInterpolation,  // for the PR curve (Davis and Goadrich 2006); else trapezoidal
  kMinoring,              // from below
  kMajoring,              // from above
};
struct AucOptions {
  Input weights = {};
  /// So many thresholds, evenly from 0 to 1, at least 2; those of `thresholds` instead, between two
  /// at the ends, when there are any.
  int num_thresholds = 200;
  Curve curve = Curve::kRoc;
  SummationMethod summation_method = SummationMethod::kTrapezoidal;
  std::vector<float> thresholds = {};
  std::string name = {};
  std::source_location location = std::source_location::current();
};
/// The area under the curve of true over false positive rates, or of precision over recall, from
/// counts at thresholds (auc).
Metric Auc(const Output& labels, const Output& predictions, const AucOptions& options = {});

}  // namespace metrics
}  // namespace tenon
