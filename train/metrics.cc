// SPDX-License-Identifier: Apache-2.0
#include "train/metrics.h"

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "ops/state/state_ops.h"
#include "train/broadcast_weights.h"
#include "train/call_scope.h"
#include "train/metric_inputs.h"
#include "train/value_as.h"

namespace tenon::metrics {
namespace {

/// `tensor` without its last dimension, when it has one more than `than` and that may be 1.
Output WithoutOneMore(const Output& tensor, const Output& than) {
  const PartialShape &mine = tensor.shape(), &others = than.shape();
  if (!mine.rank_known() || !others.rank_known() || mine.rank() != others.rank() + 1) return tensor;
  const int64_t last = mine.dim(mine.rank() - 1);
  return last == 1 || last < 0 ? Squeeze(tensor, {.squeeze_dims = {-1}}) : tensor;
}

Output Flat(const Output& tensor) {
  return tensor.shape().rank() == 1 ? tensor : Reshape(tensor, {-1});
}

/// total / count.
Metric RatioOf(const Metric& total, const Metric& count) {
  return MetricOf({total, count}, [](const auto& parts, const std::string& name) {
    return DivNoNan(parts[0], Maximum(parts[1], 0), {.name = name});
  });
}

/// The mean of aligned values, in the scope that was entered.
Metric MeanOf(const Output& given, const Output& weights, const std::source_location& at) {
  Output values = ValueAs(given, DType::kFloat);
  Output number = Cast(Size(values), DType::kFloat);
  if (weights.exists()) {
    const Output fitting = BroadcastWeights(weights, values, at);
    const Output all = BroadcastTo(fitting, ShapeOf(values));
    values = values * fitting;
    number = Sum(all);
  }
  const Metric total = Counted("total", {}, Sum(values));
  return RatioOf(total, Counted("count", {}, number));
}

}  // namespace

Aligned Align(const Output& labels, const Output& predictions, const Input& weights,
              const std::source_location& at) {
  Aligned a{WithoutOneMore(labels, predictions), WithoutOneMore(predictions, labels), {}};
  if (!a.labels.shape().IsCompatibleWith(a.predictions.shape())) {
    CurrentBuilding().Fail(
        InvalidArgument("labels of shape ", labels.shape().ToString(),
                        " do not fit predictions of ", predictions.shape().ToString()),
        at);
  }
  if (weights.left_out()) return a;
  a.weights = WithoutOneMore(ValueAs(weights, DType::kFloat), a.predictions);
  const PartialShape &w = a.weights.shape(), &p = a.predictions.shape();
  if (w.rank() > 0 && p.rank() == w.rank() + 1) a.weights = ExpandDims(a.weights, -1);
  return a;
}

Variable CountVariable(std::string_view name, const Shape& shape, DType dtype) {
  const NoControlDependencies always;
  const Variable count(name, Zeros(shape, {.dtype = dtype, .name = StrCat(name, "/zeros")}),
                       {.trainable = false, .local = true});
  CurrentBuilding().graph->Collection(kMetricVariables).push_back(count.ref());
  return count;
}

Metric Counted(std::string_view name, const Shape& shape, const Output& added) {
  const Variable count = CountVariable(name, shape, added.dtype());
  return {count, AssignAdd(count.ref(), added)};
}

Metric MetricOf(const std::vector<Metric>& parts,
                const std::function<Output(const std::vector<Output>& parts,
                                           const std::string& name)>& compute) {
  std::vector<Output> values, updates;
  for (const Metric& part : parts) {
    values.push_back(part.value);
    updates.push_back(part.update);
  }
  Metric metric;
  {
    const NoControlDependencies always;
    metric.value = compute(values, "value");
  }
  metric.update = compute(updates, "update_op");
  return metric;
}

Metric Mean(const Output& values, const MetricOptions& options) {
  const CallScope scope(options.name, "mean", options.location);
  const Aligned a = Align(values, values, options.weights, options.location);
  return MeanOf(values, a.weights, options.location);
}

Metric MeanTensor(const Output& values, const MetricOptions& options) {
  const CallScope scope(options.name, "mean", options.location);
  if (!values.shape().IsFullyKnown()) {
    CurrentBuilding().Fail(InvalidArgument("MeanTensor takes values of a known shape, found ",
                                           values.shape().ToString()),
                           options.location);
    return {};
  }
  const Aligned a = Align(values, values, options.weights, options.location);
  Output added = ValueAs(values, DType::kFloat), number = OnesLike(added);
  if (a.weights.exists()) {
    const Output weights = BroadcastWeights(a.weights, added, options.location);
    added = added * weights;
    number = number * weights;
  }
  const Shape shape(values.shape().dims());
  const Metric total = Counted("total_tensor", shape, added);
  return RatioOf(total, Counted("count_tensor", shape, number));
}

Metric Accuracy(const Output& labels, const Output& predictions, const MetricOptions& options) {
  const CallScope scope(options.name, "accuracy", options.location);
  const Aligned a = Align(labels, predictions, options.weights, options.location);
  const Output correct = Equal(ValueAs(a.predictions, a.labels.dtype()), a.labels);
  return MeanOf(correct, a.weights, options.location);
}

Metric MeanAbsoluteError(const Output& labels, const Output& predictions,
                         const MetricOptions& options) {
  const CallScope scope(options.name, "mean_absolute_error", options.location);
  const Aligned a = Align(labels, predictions, options.weights, options.location);
  return MeanOf(Abs(a.predictions - a.labels), a.weights, options.location);
}

Metric MeanSquaredError(const Output& labels, const Output& predictions,
                        const MetricOptions& options) {
  const CallScope scope(options.name, "mean_squared_error", options.location);
  const Aligned a = Align(labels, predictions, options.weights, options.location);
  return MeanOf(SquaredDifference(a.labels, a.predictions), a.weights, options.location);
}

Metric RootMeanSquaredError(const Output& labels, const Output& predictions,
                            const MetricOptions& options) {
  const CallScope scope(options.name, "root_mean_squared_error", options.location);
  const Aligned a = Align(labels, predictions, options.weights, options.location);
  const Metric mean =
      MeanOf(SquaredDifference(a.labels, a.predictions), a.weights, options.location);
  return MetricOf({mean}, [](const auto& parts, const auto&) { return Sqrt(parts[0]); });
}

Metric MeanRelativeError(const Output& labels, const Output& predictions, const Output& normalizer,
                         const MetricOptions& options) {
  const CallScope scope(options.name, "mean_relative_error", options.location);
  const Aligned a = Align(labels, predictions, options.weights, options.location);
  const Output by = WithoutOneMore(normalizer, a.predictions);
  return MeanOf(DivNoNan(Abs(a.labels - a.predictions), by), a.weights, options.location);
}

Metric MeanCosineDistance(const Output& labels, const Output& predictions, int axis,
                          const MetricOptions& options) {
  const CallScope scope(options.name, "mean_cosine_distance", options.location);
  const Aligned a = Align(labels, predictions, options.weights, options.location);
  const Output products = Sum(a.predictions * a.labels, {axis}, {.keep_dims = true});
  const Metric mean = MeanOf(products, a.weights, options.location);
  return MetricOf({mean}, [](const auto& parts, const auto&) { return 1 - parts[0]; });
}

Metric PercentageBelow(const Output& values, const Input& threshold, const MetricOptions& options) {
  const CallScope scope(options.name, "percentage_below_threshold", options.location);
  const Aligned a = Align(values, values, options.weights, options.location);
  return MeanOf(values < threshold, a.weights, options.location);
}

Metric InTopK(const Output& targets, const Output& predictions, int64_t k,
              const MetricOptions& options) {
  const CallScope scope(options.name, "in_top_k", options.location);
  const Output correct = InTopKV2(predictions, targets, Const(k, {.dtype = targets.dtype()}));
  const Aligned a = Align(correct, correct, options.weights, options.location);
  return MeanOf(correct, a.weights, options.location);
}

Metric MeanPerClassAccuracy(const Output& labels, const Output& predictions, int64_t num_classes,
                            const MetricOptions& options) {
  const CallScope scope(options.name, "mean_accuracy", options.location);
  const Output classes = Flat(ValueAs(labels, DType::kInt64));
  Output correct = Cast(Equal(Flat(ValueAs(predictions, DType::kInt64)), classes), DType::kFloat);
  Output ones = OnesLike(correct);
  if (!options.weights.left_out()) {
    const Output given = ValueAs(options.weights, DType::kFloat);
    const Output weights = given.shape().rank() > 1 ? Flat(given) : given;
    correct = correct * weights;
    ones = ones * weights;
  }
  const Variable total = CountVariable("total", {num_classes});
  const Variable count = CountVariable("count", {num_classes});
  const Output new_total = ScatterAdd(total.ref(), classes, ones);
  const Output new_count = ScatterAdd(count.ref(), classes, correct);
  const Output updated = DivNoNan(new_count, Maximum(new_total, 0), {.name = "update_op"});
  const NoControlDependencies always;
  return {tenon::Mean(DivNoNan(count, Maximum(total, 0)), {}, {.name = "mean_accuracy"}), updated};
}

Metric MeanIoU(const Output& labels, const Output& predictions, int64_t num_classes,
               const MetricOptions& options) {
  const CallScope scope(options.name, "mean_iou", options.location);
  const Output rows = Flat(ValueAs(labels, DType::kInt64));
  const Output columns = Flat(ValueAs(predictions, DType::kInt64));
  Output weights = Cast(OnesLike(rows), DType::kDouble);
  if (!options.weights.left_out()) {
    const Output given = ValueAs(options.weights, DType::kDouble);
    weights = weights * (given.shape().rank() > 1 ? Flat(given) : given);
  }
  const Output places = Pack({rows, columns}, {.axis = 1});
  const Output added =
      ScatterNd(places, weights, Const({num_classes, num_classes}, {.dtype = DType::kInt64}));
  const Metric counted = Counted("total_confusion_matrix", {num_classes, num_classes}, added);
  const NoControlDependencies always;
  const auto of_class = [&](const Output& count) { return Cast(count, DType::kFloat); };
  const Output both = of_class(DiagPart(counted.value));
  const Output either =
      of_class(Sum(counted.value, {0})) + of_class(Sum(counted.value, {1})) - both;
  const Output came = Sum(Cast(NotEqual(either, 0), DType::kFloat));
  return {DivNoNan(Sum(DivNoNan(both, either)), came, {.name = "value"}), counted.update};
}

}  // namespace tenon::metrics
