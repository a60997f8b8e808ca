// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/build/building.h"
#include "train/metric.h"

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
// Variables have TensorFlow's names, in the metric's scope ["accuracy/total", "accuracy/count"].

namespace tenon {

namespace metrics {

struct MetricOptions {
  Input weights = {};
  /// The scope of its nodes and variables; by default TensorFlow's.
  std::string name = {};
  std::source_location location = std::source_location::current();
};

/// The mean of the elements; float, as all metrics are but those at k (mean). Variables: total and
/// count, in <name>/.
Metric Mean(const Output& values, const MetricOptions& options = {});
/// The mean of each element by itself, of the shape of `values`, which must be known (mean_tensor).
/// Variables: total_tensor and count_tensor of that shape.
Metric MeanTensor(const Output& values, const MetricOptions& options = {});
/// How many of the predictions equal their labels (accuracy). Variables: total, count.
Metric Accuracy(const Output& labels, const Output& predictions, const MetricOptions& options = {});
/// The mean of |labels - predictions| (mean_absolute_error). Variables: total, count.
Metric MeanAbsoluteError(const Output& labels, const Output& predictions,
                         const MetricOptions& options = {});
/// The mean of (labels - predictions)^2 (mean_squared_error). Variables: total, count.
Metric MeanSquaredError(const Output& labels, const Output& predictions,
                        const MetricOptions& options = {});
/// The root of that mean (root_mean_squared_error). Variables: total, count.
Metric RootMeanSquaredError(const Output& labels, const Output& predictions,
                            const MetricOptions& options = {});
/// The mean of |labels - predictions| / normalizer, 0 where that is 0 (mean_relative_error).
/// Variables: total, count.
Metric MeanRelativeError(const Output& labels, const Output& predictions, const Output& normalizer,
                         const MetricOptions& options = {});
/// 1 - the mean of the dot products along `axis` of vectors that have length 1 already
/// (mean_cosine_distance). Variables: total, count.
Metric MeanCosineDistance(const Output& labels, const Output& predictions, int axis,
                          const MetricOptions& options = {});
/// How many values are below the threshold (percentage_below). Variables: total, count.
Metric PercentageBelow(const Output& values, const Input& threshold,
                       const MetricOptions& options = {});
/// How often the right class, `targets` [batch], is among the `k` of the largest `predictions`
/// [batch, classes] (tf.metrics.mean of tf.nn.in_top_k). Variables: total, count.
Metric InTopK(const Output& targets, const Output& predictions, int64_t k,
              const MetricOptions& options = {});
/// The mean over the classes of how many labels of a class are predicted; 0 for a class that never
/// came (mean_per_class_accuracy). The update is the accuracy of each class. Variables: total and
/// count [num_classes].
Metric MeanPerClassAccuracy(const Output& labels, const Output& predictions, int64_t num_classes,
                            const MetricOptions& options = {});
/// The mean over the classes that came of intersection / union: where both label and prediction
/// are the class, and where either is (mean_iou). The update is the confusion matrix, double
/// [num_classes, num_classes]. Variable: total_confusion_matrix.
Metric MeanIoU(const Output& labels, const Output& predictions, int64_t num_classes,
               const MetricOptions& options = {});

/// How many, or what weight, of each kind there are; labels and predictions are truth values,
/// numbers other than 0 being true (true_positives, false_positives, true_negatives,
/// false_negatives). Variable: count.
Metric TruePositives(const Output& labels, const Output& predictions,
                     const MetricOptions& options = {});
Metric FalsePositives(const Output& labels, const Output& predictions,
                      const MetricOptions& options = {});
Metric TrueNegatives(const Output& labels, const Output& predictions,
                     const MetricOptions& options = {});
Metric FalseNegatives(const Output& labels, const Output& predictions,
                      const MetricOptions& options = {});
/// True positives of all that are predicted to be true; 0 when none is (precision). Variables:
/// true_positives/count, false_positives/count.
Metric Precision(const Output& labels, const Output& predictions,
                 const MetricOptions& options = {});
/// True positives of all that are true; 0 when none is (recall). Variables: true_positives/count,
/// false_negatives/count.
Metric Recall(const Output& labels, const Output& predictions, const MetricOptions& options = {});

/// The same for each threshold, where a prediction, a number in [0, 1], is true when it is above
/// the threshold: [thresholds]; others fail the step (true_positives_at_thresholds,
/// false_positives_at_thresholds, true_negatives_at_thresholds, false_negatives_at_thresholds,
/// precision_at_thresholds, recall_at_thresholds). Variables: those of true_positives,
/// false_positives, true_negatives and false_negatives [thresholds] that it takes.
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
/// counts at thresholds (auc). Variables: true_positives, false_negatives, true_negatives and
/// false_positives [thresholds].
Metric Auc(const Output& labels, const Output& predictions, const AucOptions& options = {});

struct AtRateOptions {
  Input weights = {};
  /// So many thresholds, evenly from 0 to 1, at least 2.
  int num_thresholds = 200;
  std::string name = {};
  std::source_location location = std::source_location::current();
};
/// The sensitivity, true positives of all that are true, at the threshold where the specificity,
/// true negatives of all that are false, is nearest to `specificity`, in [0, 1]
/// (sensitivity_at_specificity). Variables: as Auc.
Metric SensitivityAtSpecificity(const Output& labels, const Output& predictions, double specificity,
                                const AtRateOptions& options = {});
/// The specificity at the highest threshold where the sensitivity is nearest to `sensitivity`, in
/// [0, 1] (specificity_at_sensitivity). Variables: as Auc.
Metric SpecificityAtSensitivity(const Output& labels, const Output& predictions, double sensitivity,
                                const AtRateOptions& options = {});

/// The classes that are right for each example, int32 or int64: a tensor of the rank of the
/// predictions, as many for each, or of one dimension less, one for each; or the parts of a sparse
/// tensor of such a rank, whose rows may have any number, in row-major order.
///
///   metrics::RecallAtK({indices, values, dense_shape}, logits, 5)
struct ClassLabels {
  ClassLabels(const Output& dense) : values(dense) {}  // NOLINT
  ClassLabels(Output sparse_indices, Output sparse_values, Output sparse_shape)
      : values(std::move(sparse_values)),
        indices(std::move(sparse_indices)),
        dense_shape(std::move(sparse_shape)) {}

  Output values;
  Output indices, dense_shape;  // int64 [n, rank] and [rank]; without a node when dense
};

struct AtKOptions {
  /// Counts this class alone, instead of all.
  std::optional<int64_t> class_id = {};
  /// A number, or of the shape of the predictions without the last dimension, or of 1 where that
  /// is larger.
  Input weights = {};
  std::string name = {};
  std::source_location location = std::source_location::current();
};
/// How many of the right classes are among the `k` of the largest predictions, which are
/// floating point [..., classes], of rank 2 or more; double (recall_at_k). NaN until there is a
/// label. Variables, double: true_positive_at_<k>, false_negative_at_<k>, with _class<id> when
/// there is a class_id.
Metric RecallAtK(const ClassLabels& labels, const Output& predictions, int64_t k,
                 const AtKOptions& options = {});
/// How many of the `k` classes of the largest predictions are right; of one class NaN until it is
/// among them (precision_at_k). Variables, double: true_positive_at_<k>, false_positive_at_<k>,
/// with _class<id> when there is a class_id.
Metric PrecisionAtK(const ClassLabels& labels, const Output& predictions, int64_t k,
                    const AtKOptions& options = {});

struct AtTopKOptions {
  /// For names only, "recall_at_5"; "recall_at_k" without.
  std::optional<int64_t> k = {};
  std::optional<int64_t> class_id = {};  // these as AtKOptions has them
  Input weights = {};
  std::string name = {};
  std::source_location location = std::source_location::current();
};
/// RecallAtK of classes that are chosen already, `predictions_idx` [..., k] of integers
/// (recall_at_top_k). Variables: as RecallAtK.
Metric RecallAtTopK(const ClassLabels& labels, const Output& predictions_idx,
                    const AtTopKOptions& options = {});
/// PrecisionAtK of classes that are chosen already (precision_at_top_k). Variables: as
/// PrecisionAtK.
Metric PrecisionAtTopK(const ClassLabels& labels, const Output& predictions_idx,
                       const AtTopKOptions& options = {});

/// The mean over the examples of the average precision of the `k` classes of the largest
/// predictions; double (average_precision_at_k). Of an example it is, at each of its classes that
/// is right, the part of those up to it that are, added up and divided by the number of labels, of
/// at most k. Labels that are no class are never found, and sparse ones count among the labels that
/// there are; an example without labels makes it NaN. Variables, double: total, max_1.
Metric AveragePrecisionAtK(const ClassLabels& labels, const Output& predictions, int64_t k,
                           const MetricOptions& options = {});

}  // namespace metrics
}  // namespace tenon
