// SPDX-License-Identifier: Apache-2.0
#include "train/losses.h"

#include <numeric>
#include <utility>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "train/broadcast_weights.h"
#include "train/call_scope.h"
#include "train/value_as.h"

namespace tenon::losses {
namespace {

DType ComputedIn(DType dtype) { return dtype == DType::kDouble ? dtype : DType::kFloat; }

/// Labels and predictions in the dtype of the computation.
struct Pair {
  Output labels, predictions;
};
Pair PairOf(const Input& labels, const Output& predictions, const std::source_location& at) {
  const DType dtype = ComputedIn(predictions.dtype());
  Pair pair{ValueAs(labels, dtype), ValueAs(predictions, dtype)};
  if (!pair.labels.shape().IsCompatibleWith(pair.predictions.shape())) {
    CurrentBuilding().Fail(
        InvalidArgument("labels of shape ", pair.labels.shape().ToString(),
                        " do not fit predictions of ", pair.predictions.shape().ToString()),
        at);
  }
  return pair;
}

/// Whether it is one number, known now, that is not 0.
bool IsNumberBut0(const Input& weights) {
  if (weights.literal() == nullptr) return false;
  const auto value = weights.literal()->ToTensor(DType::kDouble);
  return value.ok() && value->shape().rank() == 0 && value->scalar<double>() != 0;
}

/// The number of elements whose weight is not 0; of each row with `per_row`.
Output NumPresent(const Output& values, const Output& weights, bool per_row) {
  const Output present = Cast(NotEqual(weights, 0), weights.dtype());
  const Output all = BroadcastTo(present, ShapeOf(values));
  if (!per_row) return Sum(all);
  std::vector<int32_t> axes(values.shape().rank() - 1);
  std::iota(axes.begin(), axes.end(), 1);
  return Sum(all, axes, {.keep_dims = true});
}

/// In the scope that was entered.
Output Weighted(const Output& values, const LossOptions& options) {
  const DType dtype = ComputedIn(values.dtype());
  const Output losses = ValueAs(values, dtype);
  const Output weights =
      BroadcastWeights(ValueAs(options.weights, dtype), losses, options.location);
  const Output weighted = losses * weights;
  Output loss = weighted;
  switch (options.reduction) {
    case Reduction::kNone:
      break;
    case Reduction::kSum:
      loss = Sum(weighted);
      break;
    case Reduction::kMean:
      loss = DivNoNan(Sum(weighted), Sum(OnesLike(losses) * weights), {.name = "value"});
      break;
    case Reduction::kSumOverBatchSize:
      loss = DivNoNan(Sum(weighted), Cast(Size(losses), dtype), {.name = "value"});
      break;
    case Reduction::kSumByNonzeroWeights:
      loss = DivNoNan(Sum(weighted),
                      IsNumberBut0(options.weights) ? Cast(Size(losses), dtype)
                                                    : NumPresent(losses, weights, false),
                      {.name = "value"});
      break;
  }
  loss = ValueAs(loss, values.dtype());
  AddLoss(loss, options.loss_collection);
  return loss;
}

/// What options of any kind have in common with those of all losses.
template <typename Options>
LossOptions Common(const Options& o) {
  return {o.weights, o.reduction, o.loss_collection, o.name, o.location};
}

/// The shape without its last dimension.
Output ShapeOfRows(const Output& logits) {
  const Output shape = ShapeOf(logits);
  return shape[{{{}, -1}}];
}

/// [..., classes] as [rows, classes].
Output Rows(const Output& logits) {
  const Output classes = ShapeOf(logits)[{-1}];
  return Reshape(logits, Pack({Const(-1), classes}));
}

/// Without its last dimension, of 1.
Output WithoutLast(const Output& tensor) { return Squeeze(tensor, {.squeeze_dims = {-1}}); }

bool HasLastOf1(const Output& tensor) {
  const PartialShape& shape = tensor.shape();
  return shape.rank() > 0 && (shape.dim(shape.rank() - 1) == 1 || shape.dim(shape.rank() - 1) < 0);
}

}  // namespace

Output ComputeWeightedLoss(const Output& values, const LossOptions& options) {
  const CallScope scope(options.name, "weighted_loss", options.location);
  return Weighted(values, options);
}

Output AbsoluteDifference(const Input& labels, const Output& predictions,
                          const LossOptions& options) {
  const CallScope scope(options.name, "absolute_difference", options.location);
  const Pair p = PairOf(labels, predictions, options.location);
  return Weighted(Abs(p.predictions - p.labels), options);
}

Output CosineDistance(const Input& labels, const Output& predictions, int axis,
                      const LossOptions& options) {
  const CallScope scope(options.name, "cosine_distance_loss", options.location);
  const Pair p = PairOf(labels, predictions, options.location);
  return Weighted(1 - Sum(p.predictions * p.labels, {axis}, {.keep_dims = true}), options);
}

Output HingeLoss(const Input& labels, const Output& logits, const LossOptions& options) {
  const CallScope scope(options.name, "hinge_loss", options.location);
  const Pair p = PairOf(labels, logits, options.location);
  return Weighted(Relu(1 - (2 * p.labels - 1) * p.predictions), options);
}

Output MeanSquaredError(const Input& labels, const Output& predictions,
                        const LossOptions& options) {
  const CallScope scope(options.name, "mean_squared_error", options.location);
  const Pair p = PairOf(labels, predictions, options.location);
  return Weighted(SquaredDifference(p.predictions, p.labels), options);
}

Output HuberLoss(const Input& labels, const Output& predictions, const HuberLossOptions& options) {
  const CallScope scope(options.name, "huber_loss", options.location);
  const Pair p = PairOf(labels, predictions, options.location);
  const Output error = Abs(p.predictions - p.labels);
  const Output quadratic = Minimum(error, options.delta);
  return Weighted(0.5 * quadratic * quadratic + options.delta * (error - quadratic),
                  Common(options));
}

Output LogLoss(const Input& labels, const Output& predictions, const LogLossOptions& options) {
  const CallScope scope(options.name, "log_loss", options.location);
  const Pair p = PairOf(labels, predictions, options.location);
  const double epsilon = options.epsilon;
  return Weighted(-(p.labels * Log(p.predictions + epsilon)) -
                      (1 - p.labels) * Log(1 - p.predictions + epsilon),
                  Common(options));
}

Output MeanPairwiseSquaredError(const Input& labels, const Output& predictions,
                                const MeanPairwiseSquaredErrorOptions& options) {
  const CallScope scope(options.name, "mean_pairwise_squared_error", options.location);
  const Pair p = PairOf(labels, predictions, options.location);
  const Output differences = p.predictions - p.labels;
  const int rank = differences.shape().rank();
  if (rank < 1) {
    CurrentBuilding().Fail(
        InvalidArgument("MeanPairwiseSquaredError takes batches of known rank, found shape ",
                        differences.shape().ToString()),
        options.location);
    return {};
  }
  const Output weights = BroadcastWeights(ValueAs(options.weights, differences.dtype()),
                                          differences, options.location);
  std::vector<int32_t> within(rank - 1);
  std::iota(within.begin(), within.end(), 1);
  const Output squares = Sum(Square(differences), within, {.keep_dims = true});
  const Output square_of_sum = Square(Sum(differences, within, {.keep_dims = true}));
  const Output present = NumPresent(differences, weights, true);
  const Output others = Maximum(present - 1, 0);
  const Output of_row =
      2 * DivNoNan(squares, others) - 2 * DivNoNan(square_of_sum, present * others);
  const Output sum = Sum(of_row * weights);
  const Output loss = SelectV2(Sum(present) > 0, sum, ZerosLike(sum), {.name = "value"});
  AddLoss(loss, options.loss_collection);
  return loss;
}

Output SigmoidCrossEntropy(const Input& multi_class_labels, const Output& logits,
                           const CrossEntropyOptions& options) {
  const CallScope scope(options.name, "sigmoid_cross_entropy_loss", options.location);
  Pair p = PairOf(multi_class_labels, logits, options.location);
  if (options.label_smoothing > 0) {
    p.labels = p.labels * (1 - options.label_smoothing) + 0.5 * options.label_smoothing;
  }
  // log(1 + exp(-x)), of which neither side overflows.
  const Output zeros = ZerosLike(p.predictions);
  const Output positive = p.predictions >= zeros;
  const Output rectified = SelectV2(positive, p.predictions, zeros);
  const Output negative = SelectV2(positive, -p.predictions, p.predictions);
  const Output losses = rectified - p.predictions * p.labels + Log1p(Exp(negative));
  return Weighted(ValueAs(losses, logits.dtype()), Common(options));
}

Output SoftmaxCrossEntropy(const Input& onehot_labels, const Output& logits,
                           const CrossEntropyOptions& options) {
  const CallScope scope(options.name, "softmax_cross_entropy_loss", options.location);
  Pair p = PairOf(onehot_labels, logits, options.location);
  if (options.label_smoothing > 0) {
    const Output classes = Cast(ShapeOf(p.labels)[{-1}], p.labels.dtype());
    p.labels = p.labels * (1 - options.label_smoothing) + options.label_smoothing / classes;
  }
  p.labels = StopGradient(p.labels, {.name = "labels_stop_gradient"});
  const bool is_matrix = p.predictions.shape().rank() == 2;
  const Output rows = is_matrix ? p.predictions : Rows(p.predictions);
  const Output labels = is_matrix ? p.labels : Rows(p.labels);
  Output losses = SoftmaxCrossEntropyWithLogits(rows, labels, {.name = "xentropy"}).loss;
  if (!is_matrix) losses = Reshape(losses, ShapeOfRows(p.predictions));
  return Weighted(ValueAs(losses, logits.dtype()), Common(options));
}

Output SparseSoftmaxCrossEntropy(const Output& labels, const Output& logits,
                                 const LossOptions& options) {
  const CallScope scope(options.name, "sparse_softmax_cross_entropy_loss", options.location);
  const Output computed = ValueAs(logits, ComputedIn(logits.dtype()));
  const int rank = computed.shape().rank();
  const bool squeezed = rank >= 0 && labels.shape().rank() == rank && HasLastOf1(labels);
  const Output classes = squeezed ? WithoutLast(labels) : labels;
  LossOptions weighted = options;
  if (const Output* weights = options.weights.output();
      weights != nullptr && weights->shape().rank() > 0 && HasLastOf1(*weights) &&
      weights->shape().rank() == classes.shape().rank() + 1) {
    weighted.weights = WithoutLast(*weights);
  }
  const bool is_matrix = rank == 2;
  const Output rows = is_matrix ? computed : Rows(computed);
  const Output flat = is_matrix ? classes : Reshape(classes, {-1});
  Output losses = SparseSoftmaxCrossEntropyWithLogits(rows, flat, {.name = "xentropy"}).loss;
  if (!is_matrix) losses = Reshape(losses, ShapeOf(classes));
  return Weighted(ValueAs(losses, logits.dtype()), weighted);
}

void AddLoss(const Output& loss, const std::string& loss_collection) {
  if (loss.exists() && !loss_collection.empty()) {
    CurrentBuilding().graph->Collection(loss_collection).push_back(loss);
  }
}

std::vector<Output> GetLosses(const std::string& scope, const std::string& loss_collection) {
  std::vector<Output> losses;
  for (const Endpoint& loss : CurrentBuilding().graph->Collection(loss_collection)) {
    if (loss.node->name().starts_with(scope)) losses.emplace_back(loss);
  }
  return losses;
}

Output GetRegularizationLoss(const OpOptions& options) {
  const std::vector<Output> terms = GetLosses("", "regularization_losses");
  if (terms.empty()) return Const(0.0, {.name = options.name, .location = options.location});
  return AddN(terms, options);
}

Output GetTotalLoss(const TotalLossOptions& options) {
  std::vector<Output> all = GetLosses(options.scope);
  if (options.add_regularization_losses) {
    const std::vector<Output> terms = GetLosses(options.scope, "regularization_losses");
    all.insert(all.end(), terms.begin(), terms.end());
  }
  if (all.empty()) {
    CurrentBuilding().Fail(InvalidArgument("the graph has no loss to be added up"),
                           options.location);
    return {};
  }
  return AddN(all, {.name = options.name, .location = options.location});
}

}  // namespace tenon::losses
