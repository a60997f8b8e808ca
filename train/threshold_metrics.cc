// SPDX-License-Identifier: Apache-2.0
// The metrics that count true and false positives and negatives.
#include <algorithm>
#include <functional>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/summary/summary_ops.h"
#include "train/broadcast_weights.h"
#include "train/call_scope.h"
#include "train/metric_inputs.h"
#include "train/metrics.h"
#include "train/value_as.h"

namespace tenon::metrics {
namespace {

/// What TensorFlow adds to numbers that are divided by.
constexpr double kSmall = 1e-7;

Output Truths(const Output& values) { return ValueAs(values, DType::kBool); }

/// One of the kinds of predictions: whether they are true, and whether that is right.
struct Kind {
  const char* name;
  bool predicted;
  bool right;
};
constexpr Kind kTruePositives{"true_positives", true, true};
constexpr Kind kFalseNegatives{"false_negatives", false, false};
constexpr Kind kTrueNegatives{"true_negatives", false, true};
constexpr Kind kFalsePositives{"false_positives", true, false};

Output AreOf(const Kind& kind, const Output& labels, const Output& predictions) {
  const bool label = kind.predicted == kind.right;
  return LogicalAnd(label ? labels : LogicalNot(labels),
                    kind.predicted ? predictions : LogicalNot(predictions));
}

Metric CountOf(const Kind& kind, const Aligned& a, const std::source_location& at) {
  Output counted = Cast(AreOf(kind, a.labels, a.predictions), DType::kFloat);
  if (a.weights.exists()) counted = counted * BroadcastWeights(a.weights, counted, at);
  return Counted("count", {}, Sum(counted));
}

Metric CountOf(const Kind& kind, const Output& labels, const Output& predictions,
               const MetricOptions& options) {
  const CallScope scope(options.name, kind.name, options.location);
  return CountOf(kind,
                 Align(Truths(labels), Truths(predictions), options.weights, options.location),
                 options.location);
}

/// Counts at each threshold, [thresholds], in variables with the names of the kinds.
std::vector<Metric> CountsAtThresholds(const std::vector<Kind>& kinds, const Output& labels,
                                       const Output& predictions,
                                       const std::vector<float>& thresholds, const Input& weights,
                                       const std::source_location& at) {
  const Output numbers = ValueAs(predictions, DType::kFloat);
  const Output legal = All(LogicalAnd(numbers >= 0, numbers <= 1));
  const ControlDependencies checked({Assert(legal, {"predictions must be in [0, 1]", numbers})});
  const Aligned a = Align(Truths(labels), numbers, weights, at);
  const int64_t n = static_cast<int64_t>(thresholds.size());
  const Output truths = Reshape(a.labels, {1, -1});
  const Output positive =
      Reshape(a.predictions, {1, -1}) > Reshape(Const(thresholds), {n, int64_t{1}});
  Output each;
  if (a.weights.exists()) {
    const Output fitting = BroadcastWeights(a.weights, a.predictions, at);
    each = Reshape(BroadcastTo(fitting, ShapeOf(a.predictions)), {1, -1});
  }
  std::vector<Metric> counts;
  for (const Kind& kind : kinds) {
    Output counted = Cast(AreOf(kind, truths, positive), DType::kFloat);
    if (each.exists()) counted = counted * each;
    counts.push_back(Counted(kind.name, {n}, Sum(counted, {1})));
  }
  return counts;
}

Metric CountAtThresholds(const Kind& kind, const Output& labels, const Output& predictions,
                         const std::vector<float>& thresholds, const MetricOptions& options) {
  const CallScope scope(options.name, kind.name, options.location);
  return CountsAtThresholds({kind}, labels, predictions, thresholds, options.weights,
                            options.location)[0];
}

/// True positives of these and those of another kind.
Metric RatioAtThresholds(const Kind& other, std::string_view name, const Output& labels,
                         const Output& predictions, const std::vector<float>& thresholds,
                         const MetricOptions& options) {
  const CallScope scope(options.name, StrCat(name, "_at_thresholds"), options.location);
  const std::vector<Metric> counts = CountsAtThresholds(
      {kTruePositives, other}, labels, predictions, thresholds, options.weights, options.location);
  return MetricOf(counts, [&](const auto& parts, const std::string& of) {
    return RealDiv(parts[0], kSmall + parts[0] + parts[1], {.name = StrCat(name, "_", of)});
  });
}

Metric Ratio(const Kind& other, std::string_view name, const Output& labels,
             const Output& predictions, const MetricOptions& options) {
  const CallScope scope(options.name, name, options.location);
  const MetricOptions plain{.weights = options.weights};
  const Metric right = CountOf(kTruePositives, labels, predictions, plain);
  const Metric wrong = CountOf(other, labels, predictions, plain);
  return MetricOf({right, wrong}, [](const auto& parts, const std::string& of) {
    return DivNoNan(parts[0], parts[0] + parts[1], {.name = of});
  });
}

/// Counts at each threshold: true positives, and so on.
struct AreaCounts {
  Output tp, fn, tn, fp;
};

/// All elements but the last, and all but the first.
Output Left(const Output& x) { return x[{{{}, -1}}]; }
Output Right(const Output& x) { return x[{{1, {}}}]; }

Output InterpolatedPrArea(const AreaCounts& c) {
  const Output p = c.tp + c.fp, dtp = Left(c.tp) - Right(c.tp);
  const Output slope = DivNoNan(dtp, Maximum(Left(p) - Right(p), 0));
  const Output intercept = Right(c.tp) - slope * Right(p);
  const Output both = LogicalAnd(Left(p) > 0, Right(p) > 0);
  const Output ratio = SelectV2(both, DivNoNan(Left(p), Maximum(Right(p), 0)), OnesLike(Right(p)));
  return Sum(
      DivNoNan(slope * (dtp + intercept * Log(ratio)), Maximum(Right(c.tp) + Right(c.fn), 0)));
}

Output AreaOf(const AreaCounts& c, const AucOptions& options) {
  constexpr double kEpsilon = 1e-6;
  const bool pr = options.curve == Curve::kPr;
  if (pr && options.summation_method == SummationMethod::kCarefulInterpolation) {
    return InterpolatedPrArea(c);
  }
  const Output recall = (c.tp + kEpsilon) / (c.tp + c.fn + kEpsilon);
  const Output x = pr ? recall : c.fp / (c.fp + c.tn + kEpsilon);
  const Output y = pr ? (c.tp + kEpsilon) / (c.tp + c.fp + kEpsilon) : recall;
  Output height;
  switch (options.summation_method) {
    case SummationMethod::kTrapezoidal:
    case SummationMethod::kCarefulInterpolation:
      height = (Left(y) + Right(y)) / 2;
      break;
    case SummationMethod::kMinoring:
      height = Minimum(Left(y), Right(y));
      break;
    case SummationMethod::kMajoring:
      height = Maximum(Left(y), Right(y));
      break;
  }
  return Sum((Left(x) - Right(x)) * height);
}

/// The thresholds between 0 and 1, without these two, of so many that lie evenly from 0 to 1.
std::vector<float> EvenThresholds(int number) {
  std::vector<float> between;
  for (int i = 1; i + 1 < number; ++i) {
    between.push_back(static_cast<float>(static_cast<double>(i) / (number - 1)));
  }
  return between;
}

/// From below 0 to `last`, which is above 1 so that the ends are all and none of the predictions.
std::vector<float> WithEnds(std::vector<float> between, double last = 1 + kSmall) {
  between.insert(between.begin(), static_cast<float>(-kSmall));
  between.push_back(static_cast<float>(last));
  return between;
}

std::vector<float> AucThresholds(const AucOptions& options) {
  std::vector<float> given = options.thresholds;
  std::sort(given.begin(), given.end());
  return WithEnds(given.empty() ? EvenThresholds(options.num_thresholds) : given);
}

/// One rate at the threshold where another is as wanted.
using RateAt = std::function<Output(const AreaCounts& counts, const std::string& name)>;

Metric AtRate(std::string_view name, double rate, double last_threshold, const Output& labels,
              const Output& predictions, const AtRateOptions& options, const RateAt& rate_at) {
  const CallScope scope(options.name, name, options.location);
  const BuildContext& context = CurrentBuilding();
  if (!(rate >= 0 && rate <= 1)) {
    context.Fail(InvalidArgument(name, " takes a rate in [0, 1], found ", rate), options.location);
  }
  if (options.num_thresholds < 2) {
    context.Fail(
        InvalidArgument(name, " takes at least 2 thresholds, found ", options.num_thresholds),
        options.location);
  }
  if (!context.graph->error().ok()) return {};
  const std::vector<Metric> c = CountsAtThresholds(
      {kTruePositives, kFalseNegatives, kTrueNegatives, kFalsePositives}, labels, predictions,
      WithEnds(EvenThresholds(options.num_thresholds), last_threshold), options.weights,
      options.location);
  return MetricOf(c, [&](const auto& parts, const std::string& of) {
    return rate_at({parts[0], parts[1], parts[2], parts[3]}, of);
  });
}

/// What part `some` are of both, where neither is a divisor of 0.
Output PartOf(const Output& some, const Output& others, const std::string& name = "") {
  return RealDiv(some, some + others + kSmall, {.name = name});
}

}  // namespace

Metric TruePositives(const Output& labels, const Output& predictions,
                     const MetricOptions& options) {
  return CountOf(kTruePositives, labels, predictions, options);
}
Metric FalsePositives(const Output& labels, const Output& predictions,
                      const MetricOptions& options) {
  return CountOf(kFalsePositives, labels, predictions, options);
}
Metric TrueNegatives(const Output& labels, const Output& predictions,
                     const MetricOptions& options) {
  return CountOf(kTrueNegatives, labels, predictions, options);
}
Metric FalseNegatives(const Output& labels, const Output& predictions,
                      const MetricOptions& options) {
  return CountOf(kFalseNegatives, labels, predictions, options);
}

Metric Precision(const Output& labels, const Output& predictions, const MetricOptions& options) {
  return Ratio(kFalsePositives, "precision", labels, predictions, options);
}
Metric Recall(const Output& labels, const Output& predictions, const MetricOptions& options) {
  return Ratio(kFalseNegatives, "recall", labels, predictions, options);
}

Metric TruePositivesAtThresholds(const Output& labels, const Output& predictions,
                                 const std::vector<float>& thresholds,
                                 const MetricOptions& options) {
  return CountAtThresholds(kTruePositives, labels, predictions, thresholds, options);
}
Metric FalsePositivesAtThresholds(const Output& labels, const Output& predictions,
                                  const std::vector<float>& thresholds,
                                  const MetricOptions& options) {
  return CountAtThresholds(kFalsePositives, labels, predictions, thresholds, options);
}
Metric TrueNegativesAtThresholds(const Output& labels, const Output& predictions,
                                 const std::vector<float>& thresholds,
                                 const MetricOptions& options) {
  return CountAtThresholds(kTrueNegatives, labels, predictions, thresholds, options);
}
Metric FalseNegativesAtThresholds(const Output& labels, const Output& predictions,
                                  const std::vector<float>& thresholds,
                                  const MetricOptions& options) {
  return CountAtThresholds(kFalseNegatives, labels, predictions, thresholds, options);
}

Metric PrecisionAtThresholds(const Output& labels, const Output& predictions,
                             const std::vector<float>& thresholds, const MetricOptions& options) {
  return RatioAtThresholds(kFalsePositives, "precision", labels, predictions, thresholds, options);
}
Metric RecallAtThresholds(const Output& labels, const Output& predictions,
                          const std::vector<float>& thresholds, const MetricOptions& options) {
  return RatioAtThresholds(kFalseNegatives, "recall", labels, predictions, thresholds, options);
}

Metric Auc(const Output& labels, const Output& predictions, const AucOptions& options) {
  const CallScope scope(options.name, "auc", options.location);
  if (options.thresholds.empty() && options.num_thresholds < 2) {
    CurrentBuilding().Fail(
        InvalidArgument("Auc takes at least 2 thresholds, found ", options.num_thresholds),
        options.location);
  }
  const std::vector<Metric> c =
      CountsAtThresholds({kTruePositives, kFalseNegatives, kTrueNegatives, kFalsePositives}, labels,
                         predictions, AucThresholds(options), options.weights, options.location);
  return MetricOf(c, [&](const auto& parts, const std::string& of) {
    return Identity(AreaOf({parts[0], parts[1], parts[2], parts[3]}, options), {.name = of});
  });
}

Metric SensitivityAtSpecificity(const Output& labels, const Output& predictions, double specificity,
                                const AtRateOptions& options) {
  const auto at = [&](const AreaCounts& c, const std::string& name) {
    const Output place = ArgMin(Abs(PartOf(c.tn, c.fp) - specificity), 0);
    return PartOf(GatherV2(c.tp, place, 0), GatherV2(c.fn, place, 0), name);
  };
  return AtRate("sensitivity_at_specificity", specificity, 1 + kSmall, labels, predictions, options,
                at);
}

Metric SpecificityAtSensitivity(const Output& labels, const Output& predictions, double sensitivity,
                                const AtRateOptions& options) {
  const auto at = [&](const AreaCounts& c, const std::string& name) {
    // The last of the nearest: the first where as many are counted as there are.
    const Output distance = Abs(PartOf(c.tp, c.fn) - sensitivity);
    const Output nearest = Cast(Equal(distance, Min(distance)), DType::kInt64);
    const Output place = ArgMax(Cumsum(nearest, 0), 0);
    return PartOf(GatherV2(c.tn, place, 0), GatherV2(c.fp, place, 0), name);
  };
  // The last threshold is below 1, as TensorFlow has it.
  return AtRate("specificity_at_sensitivity", sensitivity, 1 - kSmall, labels, predictions, options,
                at);
}

}  // namespace tenon::metrics
