// SPDX-License-Identifier: Apache-2.0
// Metrics of the classes of the largest predictions: small cases by hand, and mistakes. That the
// values are TensorFlow's is tests/interop/metrics_test.py's.
#include <gmock/gmock.h>

#include <cmath>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"
#include "train/metrics.h"
#include "train/variables.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// In the first row class 2 is the largest, then 0, in the second 1, then 2.
Output Logits() { return Const({{0.5, 0.1, 0.9}, {0.2, 0.8, 0.3}}, {.dtype = DType::kFloat}); }

Output Int64s(const Input& values) { return Const(values, {.dtype = DType::kInt64}); }

double UpdateOf(GraphSession& s, const Metric& metric) {
  EXPECT_OK(s.Run({}, {LocalVariablesInitializer()}).status());
  const auto values = s.Run({metric.update});
  EXPECT_OK(values.status());
  return values.ok() ? (*values)[0].scalar<double>() : -1;
}

TEST(TopKMetricsTest, LabelsAreOneForEachRowOrSeveralOrSparse) {
  // The labels {1}, {1, 2} are three: one is the largest, and two are among the two largest.
  const auto of = [](const metrics::ClassLabels& labels, int64_t k) {
    return std::pair(metrics::RecallAtK(labels, Logits(), k),
                     metrics::PrecisionAtK(labels, Logits(), k));
  };
  {
    GraphSession s;
    const auto [recall, precision] = of(Int64s({{1, 1}, {1, 2}}), 1);
    EXPECT_DOUBLE_EQ(UpdateOf(s, recall), 1. / 3);
    EXPECT_DOUBLE_EQ(UpdateOf(s, precision), 1. / 2);
  }
  {
    GraphSession s;
    const auto [recall, precision] =
        of({Int64s({{0, 0}, {1, 0}, {1, 1}}), Const({1, 1, 2}), Int64s({2, 2})}, 2);
    EXPECT_DOUBLE_EQ(UpdateOf(s, recall), 2. / 3);
    EXPECT_DOUBLE_EQ(UpdateOf(s, precision), 2. / 4);
  }
  {
    GraphSession s;
    const auto [recall, precision] = of(Const({2, 2}), 1);
    EXPECT_DOUBLE_EQ(UpdateOf(s, recall), 1. / 2);
    EXPECT_DOUBLE_EQ(UpdateOf(s, precision), 1. / 2);
  }
}

TEST(TopKMetricsTest, OneClassIsCountedAloneAndIsNaNUntilItComes) {
  GraphSession s;
  const Output labels = Placeholder(DType::kInt64, {2}, {.name = "labels"});
  const Metric recall = metrics::RecallAtK(labels, Logits(), 1, {.class_id = 1});
  std::vector<std::string> names;
  for (const VariableEntry& v : s.graph.variables()) names.push_back(v.ref->name());
  EXPECT_THAT(names, ElementsAre("recall_at_1_class1/true_positive_at_1_class1",
                                 "recall_at_1_class1/false_negative_at_1_class1"));
  ASSERT_OK(s.Run({}, {LocalVariablesInitializer()}).status());
  const auto update = [&](int64_t first, int64_t second) {
    const auto now =
        s.Run({recall.update}, {}, {{"labels", Tensor::Vector<int64_t>({first, second})}});
    EXPECT_OK(now.status());
    return now.ok() ? (*now)[0].scalar<double>() : -1;
  };
  EXPECT_TRUE(std::isnan(update(0, 2)));
  EXPECT_EQ(update(0, 1), 1);
  EXPECT_EQ(update(1, 0), 0.5);
}

TEST(TopKMetricsTest, WeightsAreOfRows) {
  GraphSession s;
  const Metric precision = metrics::PrecisionAtTopK(Const({2, 2}), Const({{2, 0}, {1, 0}}),
                                                    {.k = 2, .weights = {3.0, 1.0}});
  EXPECT_DOUBLE_EQ(UpdateOf(s, precision), 3. / 8);
  metrics::RecallAtTopK(Const({2, 2}), Const({{2, 0}, {1, 0}}), {.weights = {1.0, 1.0, 1.0}});
  EXPECT_THAT(s.graph.error().message(),
              HasSubstr("weights of shape [3] cannot be broadcast to values of [2]"));
}

TEST(TopKMetricsTest, AnAveragePrecisionCountsWhereLabelsCome) {
  GraphSession s;
  // The labels come second and third in the row 2, 0, 1: (1/2 + 2/3) / 2. 7 is no class.
  const Metric metric = metrics::AveragePrecisionAtK(Int64s({{0, 1, 7}, {1, -1, -1}}), Logits(), 3);
  EXPECT_NEAR(UpdateOf(s, metric), ((1. / 2 + 2. / 3) / 2 + 1) / 2, 1e-12);
  const Metric none =
      metrics::AveragePrecisionAtK({Int64s({{0, 0}}), Int64s({1}), Int64s({2, 2})}, Logits(), 3);
  EXPECT_TRUE(std::isnan(UpdateOf(s, none)));
}

TEST(TopKMetricsTest, SparseLabelsOutOfOrderAreAnErrorOfTheStep) {
  GraphSession s;
  const Metric metric =
      metrics::RecallAtK({Int64s({{1, 0}, {0, 0}}), Int64s({1, 1}), Int64s({2, 2})}, Logits(), 1);
  ASSERT_OK(s.Run({}, {LocalVariablesInitializer()}).status());
  EXPECT_EQ(s.Run({metric.update}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(TopKMetricsTest, LabelsThatDoNotFitAreMistakes) {
  const auto mistake_of = [](const metrics::ClassLabels& labels, const Output& predictions,
                             int64_t k) {
    EXPECT_FALSE(metrics::RecallAtK(labels, predictions, k).value.exists());
    const std::string mistake(CurrentBuilding().graph->error().message());
    EXPECT_FALSE(metrics::AveragePrecisionAtK(labels, predictions, k).value.exists());
    return mistake;
  };
  {
    GraphSession s;
    EXPECT_THAT(mistake_of(Const({1, 2}), Logits(), 0),
                HasSubstr("recall_at_0 takes a k of at least 1, found 0"));
  }
  {
    GraphSession s;
    EXPECT_THAT(mistake_of(Const({{{1}}, {{2}}}), Logits(), 1),
                HasSubstr("labels of rank 3 do not fit predictions of shape [2,1]"));
  }
  {
    GraphSession s;
    EXPECT_THAT(mistake_of(Const({0.5, 1.5}), Logits(), 1),
                HasSubstr("labels of classes are int32 or int64, found float"));
  }
  {
    GraphSession s;
    EXPECT_THAT(mistake_of(Const({1, 2}), Placeholder(DType::kFloat, PartialShape()), 1),
                HasSubstr("predictions of classes have a known rank of at least 2"));
  }
  {
    GraphSession s;
    EXPECT_THAT(mistake_of({Int64s({{0, 0}}), Int64s({1}), Output()}, Logits(), 1),
                HasSubstr("labels need a tensor, or indices, values and dense_shape"));
  }
}

}  // namespace
}  // namespace tenon::testing
