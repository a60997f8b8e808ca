// SPDX-License-Identifier: Apache-2.0
// The metrics of the classes of the k largest predictions. Those of each example are a set, and so
// are its labels; what is counted are elements of what operations on both make.
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "ops/sparse/sparse_ops.h"
#include "train/broadcast_weights.h"
#include "train/call_scope.h"
#include "train/metric_inputs.h"
#include "train/metrics.h"
#include "train/value_as.h"

namespace tenon::metrics {
namespace {

/// A set of int64 for each row; of a tensor, where there are no indices, the last dimension.
using Sets = ClassLabels;

bool IsSparse(const Sets& sets) { return sets.indices.exists(); }

/// -1 when the graph does not tell it.
int RankOf(const Sets& sets) {
  if (!IsSparse(sets)) return sets.values.shape().rank();
  const PartialShape &dims = sets.dense_shape.shape(), &places = sets.indices.shape();
  if (dims.rank() == 1 && dims.dim(0) >= 0) return static_cast<int>(dims.dim(0));
  return places.rank() == 2 ? static_cast<int>(places.dim(1)) : -1;
}

/// The labels as sets of rows as the predictions have them: a dimension more when they are one for
/// each. Without a node after a mistake.
Sets LabelSets(const ClassLabels& labels, const Output& predictions,
               const std::source_location& at) {
  const BuildContext& context = CurrentBuilding();
  if (!context.graph->error().ok()) return Output();
  const bool parts = !labels.indices.exists() || labels.dense_shape.exists();
  if (!labels.values.exists() || !parts) {
    context.Fail(InvalidArgument("labels need a tensor, or indices, values and dense_shape"), at);
    return Output();
  }
  const DType dtype = labels.values.dtype();
  if (dtype != DType::kInt32 && dtype != DType::kInt64) {
    context.Fail(InvalidArgument("labels of classes are int32 or int64, found ", ToString(dtype)),
                 at);
  }
  const int wanted = predictions.shape().rank(), rank = RankOf(labels);
  if (wanted < 2) {
    context.Fail(InvalidArgument("predictions of classes have a known rank of at least 2, found ",
                                 predictions.shape().ToString()),
                 at);
  } else if (rank >= 0 && rank != wanted && rank + 1 != wanted) {
    context.Fail(
        InvalidArgument("labels of rank ", rank, " do not fit predictions of shape ",
                        predictions.shape().ToString(), ": they have the same rank, or one less"),
        at);
  }
  if (!context.graph->error().ok()) return Output();
  Sets sets = labels;
  sets.values = ValueAs(labels.values, DType::kInt64);
  if (rank + 1 != wanted || rank < 0) return sets;
  if (!IsSparse(sets)) return ExpandDims(sets.values, -1);
  const Output one = Const({1}, {.dtype = DType::kInt64});
  const auto wider =
      SparseReshape(sets.indices, sets.dense_shape, ConcatV2({sets.dense_shape, one}, 0));
  return {wider.output_indices, sets.values, wider.output_shape};
}

/// What of each set is that class.
Sets OnlyClass(const Sets& sets, int64_t class_id) {
  const Output id = Const(class_id, {.dtype = DType::kInt64});
  if (IsSparse(sets)) {
    const Output places = Reshape(Where(Equal(sets.values, id)), {-1});
    return {GatherV2(sets.indices, places, 0), GatherV2(sets.values, places, 0), sets.dense_shape};
  }
  const Output shape = ShapeOf(sets.values, {.out_type = DType::kInt64});
  const Output one = Const({1}, {.dtype = DType::kInt64});
  const Output wanted = Fill(ConcatV2({shape[{{{}, -1}}], one}, 0), id);
  const auto found = DenseToDenseSetOperation(wanted, sets.values, "intersection");
  return {found.result_indices, found.result_values, shape};
}

/// What an operation of sets makes of each row's predictions, a, and labels, b; a is a tensor where
/// b is one.
Sets Combined(const Sets& a, const Sets& b, const std::string& operation) {
  const auto sets = [](const auto& result) {
    return Sets(result.result_indices, result.result_values, result.result_shape);
  };
  if (!IsSparse(b)) return sets(DenseToDenseSetOperation(a.values, b.values, operation));
  if (!IsSparse(a)) {
    return sets(DenseToSparseSetOperation(a.values, b.indices, b.values, b.dense_shape, operation));
  }
  return sets(SparseToSparseSetOperation(a.indices, a.values, a.dense_shape, b.indices, b.values,
                                         b.dense_shape, operation));
}

/// How many each set has, of the shape of the predictions without the last dimension.
Output SizesOf(const Sets& sets, const PartialShape& predictions) {
  const Output sizes = SetSize(sets.indices, sets.values, sets.dense_shape);
  return Cast(EnsureShape(sizes, predictions.Part(0, predictions.rank() - 1)), DType::kDouble);
}

/// "recall_at_5_class2"
std::string AtKName(std::string_view name, std::optional<int64_t> k,
                    std::optional<int64_t> class_id) {
  std::string full = k ? StrCat(name, "_at_", *k) : StrCat(name, "_at_k");
  if (class_id) StrAppend(&full, "_class", *class_id);
  return full;
}

/// One of the two metrics: what is counted beside the true positives, and by which operation.
struct AtKKind {
  const char* name;
  const char* other;
  const char* operation;
};
constexpr AtKKind kRecall{"recall", "false_negative", "b-a"};
constexpr AtKKind kPrecision{"precision", "false_positive", "a-b"};

/// In the scope that was entered.
Metric RatioAtTopK(const AtKKind& kind, const ClassLabels& given, const Output& predictions_idx,
                   const AtTopKOptions& options) {
  const PartialShape& shape = predictions_idx.shape();
  Sets labels = LabelSets(given, predictions_idx, options.location);
  if (!CurrentBuilding().graph->error().ok()) return {};
  Sets predictions = ValueAs(predictions_idx, DType::kInt64);
  if (options.class_id) {
    labels = OnlyClass(labels, *options.class_id);
    predictions = OnlyClass(predictions, *options.class_id);
  }
  const auto counted = [&](const char* name, const char* operation) {
    Output sizes = SizesOf(Combined(predictions, labels, operation), shape);
    if (!options.weights.left_out()) {
      const Output weights = ValueAs(options.weights, DType::kDouble);
      sizes = sizes * BroadcastWeights(weights, sizes, options.location);
    }
    return Counted(AtKName(name, options.k, options.class_id), {}, Sum(sizes));
  };
  const Metric right = counted("true_positive", "intersection");
  return MetricOf({right, counted(kind.other, kind.operation)},
                  [](const auto& parts, const std::string& name) {
                    return RealDiv(parts[0], parts[0] + parts[1], {.name = name});
                  });
}

/// Where the k largest predictions of each row are; without a node after a mistake.
Output TopClasses(std::string_view name, const Output& predictions, int64_t k,
                  const std::source_location& at) {
  const BuildContext& context = CurrentBuilding();
  if (k < 1) context.Fail(InvalidArgument(name, " takes a k of at least 1, found ", k), at);
  if (!context.graph->error().ok()) return {};
  return TopKV2(predictions, Const(k, {.dtype = DType::kInt32})).indices;
}

Metric RatioAtK(const AtKKind& kind, const ClassLabels& labels, const Output& predictions,
                int64_t k, const AtKOptions& options) {
  const std::string name = AtKName(kind.name, k, options.class_id);
  const CallScope scope(options.name, name, options.location);
  const Output top = TopClasses(name, predictions, k, options.location);
  return RatioAtTopK(kind, labels, top,
                     {k, options.class_id, options.weights, {}, options.location});
}

Metric RatioAtTopKInScope(const AtKKind& kind, const ClassLabels& labels,
                          const Output& predictions_idx, const AtTopKOptions& options) {
  const CallScope scope(options.name, AtKName(kind.name, options.k, options.class_id),
                        options.location);
  return RatioAtTopK(kind, labels, predictions_idx, options);
}

/// The average precision of each row, double, of predictions [..., k] that differ.
Output AveragePrecisions(const Sets& labels, const Output& predictions, int64_t k) {
  // The classes that are right, in columns: fewer than k where a row has -1.
  const Sets right = Combined(predictions, labels, "intersection");
  const Output classes = SparseToDense(right.indices, right.dense_shape, right.values,
                                       Const(-1, {.dtype = DType::kInt64}));
  const Output relevant =
      Cast(Any(Equal(ExpandDims(predictions, -1), ExpandDims(classes, -2)), {-1}), DType::kDouble);
  const Output precisions = Cumsum(relevant, -1) / Cumsum(OnesLike(relevant), -1);
  const Output limit = Const(k, {.dtype = DType::kDouble});
  const Output number = IsSparse(labels) ? SizesOf(labels, predictions.shape())
                                         : Sum(Cast(labels.values >= 0, DType::kDouble), {-1});
  return Sum(precisions * relevant, {-1}) / Minimum(number, limit);
}

}  // namespace

Metric RecallAtK(const ClassLabels& labels, const Output& predictions, int64_t k,
                 const AtKOptions& options) {
  return RatioAtK(kRecall, labels, predictions, k, options);
}
Metric PrecisionAtK(const ClassLabels& labels, const Output& predictions, int64_t k,
                    const AtKOptions& options) {
  return RatioAtK(kPrecision, labels, predictions, k, options);
}
Metric RecallAtTopK(const ClassLabels& labels, const Output& predictions_idx,
                    const AtTopKOptions& options) {
  return RatioAtTopKInScope(kRecall, labels, predictions_idx, options);
}
Metric PrecisionAtTopK(const ClassLabels& labels, const Output& predictions_idx,
                       const AtTopKOptions& options) {
  return RatioAtTopKInScope(kPrecision, labels, predictions_idx, options);
}

Metric AveragePrecisionAtK(const ClassLabels& given, const Output& predictions, int64_t k,
                           const MetricOptions& options) {
  const std::string name = AtKName("average_precision", k, {});
  const CallScope scope(options.name, name, options.location);
  const Output top = TopClasses(name, predictions, k, options.location);
  Sets labels = LabelSets(given, predictions, options.location);
  if (!CurrentBuilding().graph->error().ok()) return {};
  const Output classes = ShapeOf(predictions, {.out_type = DType::kInt64})[-1];
  const Output none = Const(-1, {.dtype = DType::kInt64});
  labels.values = SelectV2(labels.values < classes, labels.values, none);
  Output precisions = AveragePrecisions(labels, ValueAs(top, DType::kInt64), k);
  Output most = Cast(Size(precisions), DType::kDouble);
  if (!options.weights.left_out()) {
    const Output weights = BroadcastTo(
        BroadcastWeights(ValueAs(options.weights, DType::kDouble), precisions, options.location),
        ShapeOf(precisions));
    precisions = precisions * weights;
    most = Sum(weights);
  }
  // TensorFlow has a node "Max" before it, of which a name must differ in more than its letters'
  // case.
  const Metric maximum = Counted("max_1", {}, most), total = Counted("total", {}, Sum(precisions));
  return MetricOf({total, maximum}, [](const auto& parts, const std::string& of) {
    return DivNoNan(parts[0], parts[1], {.name = of});
  });
}

}  // namespace tenon::metrics
