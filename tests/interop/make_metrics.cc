// SPDX-License-Identifier: Apache-2.0
// Writes a graph of all metrics, without and with weights, to the file that it is given, and prints
// labels and names. For metrics_test.py, which has the same in TensorFlow.
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "tests/interop/labelled_graph.h"
#include "train/metrics.h"
#include "train/variables.h"

namespace tenon {
namespace {

void Add(const std::string& label, const Metric& metric) {
  Label(label, metric.value);
  Label(label + "/update", metric.update);
}

/// The metrics of elements, with weights for each of them.
void AddAll(const std::string& scope, const Input& weights) {
  const NameScope in(scope);
  const Graph& graph = *CurrentBuilding().graph;
  const Output truths(graph.Find("truths")), classes(graph.Find("classes"));
  const Output scores(graph.Find("scores")), guesses(graph.Find("guesses"));
  const metrics::MetricOptions o{.weights = weights};
  const std::vector<float> thresholds = {0.2f, 0.5f, 0.7f};
  const auto add = [&](const std::string& label, const Metric& m) { Add(scope + "/" + label, m); };
  add("mean", metrics::Mean(scores, o));
  add("mean_tensor", metrics::MeanTensor(scores, o));
  add("accuracy", metrics::Accuracy(classes, guesses, o));
  add("accuracy_of_column", metrics::Accuracy(Reshape(classes, {12, 1}), guesses, o));
  add("mean_absolute_error", metrics::MeanAbsoluteError(truths, scores, o));
  add("mean_squared_error", metrics::MeanSquaredError(truths, scores, o));
  add("root_mean_squared_error", metrics::RootMeanSquaredError(truths, scores, o));
  add("mean_relative_error", metrics::MeanRelativeError(truths, scores, truths, o));
  add("percentage_below", metrics::PercentageBelow(scores, 0.6, o));
  add("mean_per_class_accuracy", metrics::MeanPerClassAccuracy(classes, guesses, 5, o));
  add("mean_iou", metrics::MeanIoU(classes, guesses, 5, o));
  add("true_positives", metrics::TruePositives(truths, guesses, o));
  add("false_positives", metrics::FalsePositives(truths, guesses, o));
  add("true_negatives", metrics::TrueNegatives(truths, guesses, o));
  add("false_negatives", metrics::FalseNegatives(truths, guesses, o));
  add("precision", metrics::Precision(truths, guesses, o));
  add("recall", metrics::Recall(truths, guesses, o));
  using metrics::Curve;
  add("true_positives_at_thresholds",
      metrics::TruePositivesAtThresholds(truths, scores, thresholds, o));
  add("false_positives_at_thresholds",
      metrics::FalsePositivesAtThresholds(truths, scores, thresholds, o));
  add("true_negatives_at_thresholds",
      metrics::TrueNegativesAtThresholds(truths, scores, thresholds, o));
  add("false_negatives_at_thresholds",
      metrics::FalseNegativesAtThresholds(truths, scores, thresholds, o));
  add("precision_at_thresholds", metrics::PrecisionAtThresholds(truths, scores, thresholds, o));
  add("recall_at_thresholds", metrics::RecallAtThresholds(truths, scores, thresholds, o));
  const std::pair<const char*, metrics::SummationMethod> methods[] = {
      {"trapezoidal", metrics::SummationMethod::kTrapezoidal},
      {"careful_interpolation", metrics::SummationMethod::kCarefulInterpolation},
      {"minoring", metrics::SummationMethod::kMinoring},
      {"majoring", metrics::SummationMethod::kMajoring}};
  for (const auto& [name, method] : methods) {
    add(StrCat("auc/ROC/", name),
        metrics::Auc(truths, scores, {.weights = weights, .summation_method = method}));
    add(StrCat("auc/PR/", name), metrics::Auc(truths, scores,
                                              {.weights = weights,
                                               .num_thresholds = 50,
                                               .curve = Curve::kPr,
                                               .summation_method = method}));
  }
  add("auc/thresholds",
      metrics::Auc(truths, scores, {.weights = weights, .thresholds = {0.7f, 0.3f, 0.5f}}));
  for (const double rate : {0.0, 0.35, 0.8, 1.0}) {
    add(StrCat("sensitivity_at_specificity/", rate),
        metrics::SensitivityAtSpecificity(truths, scores, rate, {.weights = weights}));
    add(StrCat("specificity_at_sensitivity/", rate),
        metrics::SpecificityAtSensitivity(truths, scores, rate,
                                          {.weights = weights, .num_thresholds = 30}));
  }
}

/// The metrics of the classes of the largest logits, for labels of one class for each row, of
/// three, and of any number.
void AddAllAtK(const std::string& scope, const Input& weights) {
  const NameScope in(scope);
  const Graph& graph = *CurrentBuilding().graph;
  const Output logits(graph.Find("logits")), classes(graph.Find("classes"));
  const Output several(graph.Find("several")), chosen(graph.Find("chosen"));
  const Output places(graph.Find("places")), values(graph.Find("values"));
  const auto int64s = [](const Input& x) { return Const(x, {.dtype = DType::kInt64}); };
  const std::pair<const char*, metrics::ClassLabels> labels[] = {
      {"one", classes},
      {"several", several},
      {"sparse", {places, values, int64s({12, 4})}},
      {"sparse_column",
       {ExpandDims(Range(int64s(0), int64s(12), int64s(1)), 1), classes, int64s({12})}}};
  const metrics::MetricOptions o{.weights = weights};
  for (const auto& [kind, given] : labels) {
    const auto add = [&](const std::string& label, const Metric& m) {
      Add(StrCat(scope, "/", label, "/", kind), m);
    };
    add("recall_at_k", metrics::RecallAtK(given, logits, 2, {.weights = weights}));
    add("precision_at_k", metrics::PrecisionAtK(given, logits, 3, {.weights = weights}));
    add("recall_of_class",
        metrics::RecallAtK(given, logits, 2, {.class_id = 1, .weights = weights}));
    add("precision_of_class",
        metrics::PrecisionAtK(given, logits, 2, {.class_id = 3, .weights = weights}));
    add("recall_at_top_k", metrics::RecallAtTopK(given, chosen, {.weights = weights}));
    add("precision_at_top_k",
        metrics::PrecisionAtTopK(given, chosen, {.k = 2, .weights = weights}));
    add("recall_of_class_at_top_k",
        metrics::RecallAtTopK(given, chosen, {.k = 2, .class_id = 2, .weights = weights}));
    add("average_precision_at_k", metrics::AveragePrecisionAtK(given, logits, 4, o));
  }
  Add(scope + "/mean_cosine_distance", metrics::MeanCosineDistance(Softmax(logits), logits, 1, o));
}

void Metrics() {
  Placeholder(DType::kFloat, {12}, {.name = "truths"});
  const Output classes = Placeholder(DType::kInt64, {12}, {.name = "classes"});
  Placeholder(DType::kFloat, {12}, {.name = "scores"});
  Placeholder(DType::kInt32, {12}, {.name = "guesses"});
  const Output weights = Placeholder(DType::kFloat, {12}, {.name = "weights"});
  const Output logits = Placeholder(DType::kFloat, {12, 5}, {.name = "logits"});
  Placeholder(DType::kInt64, {12, 3}, {.name = "several"});
  Placeholder(DType::kInt64, {12, 2}, {.name = "chosen"});
  Placeholder(DType::kInt64, {-1, 2}, {.name = "places"});
  Placeholder(DType::kInt64, {-1}, {.name = "values"});
  AddAll("plain", {});
  AddAll("weighted", weights);
  AddAllAtK("plain_at_k", {});
  AddAllAtK("weighted_at_k", weights);
  {
    const NameScope scope("more");
    Add("more/in_top_k", metrics::InTopK(classes, logits, 2, {.name = "top_k"}));
    Add("more/mean_of_rows", metrics::Mean(logits, {.weights = weights}));
    Add("more/mean_of_number", metrics::Mean(logits, {.weights = 0.5}));
    Add("more/precision_of_number",
        metrics::Precision(Greater(logits, 0), Greater(logits, 0.5), {.weights = 0.5}));
  }
  Label("init", LocalVariablesInitializer());
}

}  // namespace
}  // namespace tenon

int main(int, char** argv) { return tenon::WriteLabelledGraph(argv[1], tenon::Metrics); }
