// SPDX-License-Identifier: Apache-2.0
// Writes a graph of all losses, each with all kinds of weights and reductions, and their gradients
// by the predictions, to the file that it is given, and prints a label and a name for each. For
// losses_test.py, which has the same in TensorFlow.
#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "tests/interop/labelled_graph.h"
#include "train/losses.h"

namespace tenon {
namespace {

using losses::Reduction;

struct Given {
  Output labels, classes, predictions;
};

void Add(const std::string& label, const Given& in, const Output& loss) {
  Label(label, loss);
  Label(label + "/gradient", Gradients(Sum(loss), {in.predictions})[0]);
}

/// Adds losses with weights that fit the losses of all elements, and of all rows.
void Add(const std::string& label, const Given& in, Reduction r, const Input& each,
         const Input& row) {
  const Output &l = in.labels, &p = in.predictions;
  const auto add = [&](const std::string& loss, const Output& value) {
    Add(loss + label, in, value);
  };
  add("absolute_difference", losses::AbsoluteDifference(l, p, {.weights = each, .reduction = r}));
  add("hinge_loss", losses::HingeLoss(l, p, {.weights = each, .reduction = r}));
  add("mean_squared_error", losses::MeanSquaredError(l, p, {.weights = each, .reduction = r}));
  add("huber_loss", losses::HuberLoss(l, p, {.weights = each, .delta = 0.4, .reduction = r}));
  add("log_loss", losses::LogLoss(l, p, {.weights = each, .epsilon = 1e-3, .reduction = r}));
  add("sigmoid_cross_entropy",
      losses::SigmoidCrossEntropy(l, p, {.weights = each, .reduction = r}));
  add("sigmoid_cross_entropy_smooth",
      losses::SigmoidCrossEntropy(l, p, {.weights = each, .label_smoothing = 0.2, .reduction = r}));
  add("softmax_cross_entropy", losses::SoftmaxCrossEntropy(l, p, {.weights = row, .reduction = r}));
  add("softmax_cross_entropy_smooth",
      losses::SoftmaxCrossEntropy(l, p, {.weights = row, .label_smoothing = 0.2, .reduction = r}));
  add("sparse_softmax_cross_entropy",
      losses::SparseSoftmaxCrossEntropy(in.classes, p, {.weights = row, .reduction = r}));
  add("compute_weighted_loss", losses::ComputeWeightedLoss(p, {.weights = each, .reduction = r}));
}

void Losses() {
  const Given in{Placeholder(DType::kFloat, {4, 3}, {.name = "labels"}),
                 Placeholder(DType::kInt64, {4}, {.name = "classes"}),
                 Placeholder(DType::kFloat, {4, 3}, {.name = "predictions"})};
  const Output each = Placeholder(DType::kFloat, {4, 3}, {.name = "each"});
  const Output column = Placeholder(DType::kFloat, {4, 1}, {.name = "column"});
  const Output row = Placeholder(DType::kFloat, {4}, {.name = "row"});
  const std::pair<const char*, Reduction> reductions[] = {
      {"none", Reduction::kNone},
      {"weighted_sum", Reduction::kSum},
      {"weighted_mean", Reduction::kMean},
      {"weighted_sum_over_batch_size", Reduction::kSumOverBatchSize},
      {"weighted_sum_by_nonzero_weights", Reduction::kSumByNonzeroWeights}};
  for (const auto& [name, r] : reductions) {
    Add(StrCat("/", name, "/number"), in, r, 0.7, 0.7);
    Add(StrCat("/", name, "/each"), in, r, each, row);
    Add(StrCat("/", name, "/column"), in, r, column, row);
    Add(StrCat("cosine_distance/", name), in,
        losses::CosineDistance(in.labels, in.predictions, 1, {.weights = column, .reduction = r}));
  }
  Add("mean_pairwise_squared_error/number", in,
      losses::MeanPairwiseSquaredError(in.labels, in.predictions, {.weights = 0.7}));
  Add("mean_pairwise_squared_error/column", in,
      losses::MeanPairwiseSquaredError(in.labels, in.predictions, {.weights = column}));
  // The next losses are of rank 3, and of shapes that are not known.
  const Output cube = Reshape(in.predictions, {2, 2, 3});
  Add("softmax_cross_entropy/rank_3", in,
      losses::SoftmaxCrossEntropy(Reshape(in.labels, {2, 2, 3}), cube));
  Add("sparse_softmax_cross_entropy/rank_3", in,
      losses::SparseSoftmaxCrossEntropy(Reshape(in.classes, {2, 2}), cube));
  Add("sparse_softmax_cross_entropy/squeezed", in,
      losses::SparseSoftmaxCrossEntropy(Reshape(in.classes, {4, 1}), in.predictions,
                                        {.weights = column}));
  const Output unknown = Placeholder(DType::kFloat, {-1, -1}, {.name = "unknown_weights"});
  Add("mean_squared_error/unknown", in,
      losses::MeanSquaredError(in.labels, in.predictions, {.weights = unknown}));
  {
    const NameScope scope("summed");
    losses::MeanSquaredError(in.labels, in.predictions);
    losses::HingeLoss(in.labels, in.predictions);
  }
  Label("total", losses::GetTotalLoss({.scope = "summed"}));
}

}  // namespace
}  // namespace tenon

int main(int, char** argv) { return tenon::WriteLabelledGraph(argv[1], tenon::Losses); }
