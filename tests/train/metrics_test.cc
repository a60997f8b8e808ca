// SPDX-License-Identifier: Apache-2.0
// Mistakes, and which variables metrics have. That the values are TensorFlow's is
// tests/interop/metrics_test.py's.
#include "train/metrics.h"

#include <gmock/gmock.h>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"
#include "train/variables.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(MetricsTest, VariablesAreLocal) {
  GraphSession s;
  const NameScope scope("eval");
  metrics::Accuracy(Zeros({2}), Ones({2}));
  metrics::Accuracy(Zeros({2}), Ones({2}));
  std::vector<std::string> names;
  for (const VariableEntry& v : s.graph.variables()) {
    EXPECT_TRUE(v.local);
    EXPECT_FALSE(v.trainable);
    names.push_back(v.ref->name());
  }
  EXPECT_THAT(names, ElementsAre("eval/accuracy/total", "eval/accuracy/count",
                                 "eval/accuracy_1/total", "eval/accuracy_1/count"));
}

TEST(MetricsTest, InitialisingBeginsAnew) {
  GraphSession s;
  const Output x = Placeholder(DType::kFloat, {-1}, {.name = "x"});
  const Metric mean = metrics::Mean(x);
  Node* const init = LocalVariablesInitializer();
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK(s.Run({}, {init}).status());
    EXPECT_EQ(s.Value(mean.value).scalar<float>(), 0);
    ASSERT_OK(s.Run({}, {mean.update}, {{"x", Tensor::Of<float>({2}, {1, 2})}}).status());
    const auto now = s.Run({mean.update}, {}, {{"x", Tensor::Of<float>({1}, {6})}});
    ASSERT_OK(now.status());
    EXPECT_EQ((*now)[0].scalar<float>(), 3);
    EXPECT_EQ(s.Value(mean.value).scalar<float>(), 3);
  }
}

TEST(MetricsTest, PredictionsAtThresholdsAreIn0To1) {
  GraphSession s;
  const Output x = Placeholder(DType::kFloat, {2}, {.name = "x"});
  const Metric auc = metrics::Auc(Zeros({2}), x);
  ASSERT_OK(s.Run({}, {LocalVariablesInitializer()}).status());
  const auto found = s.Run({auc.update}, {}, {{"x", Tensor::Of<float>({2}, {0.5, 1.5})}});
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("predictions must be in [0, 1]"));
}

TEST(MetricsTest, ValuesDoNotRunWhatWasEntered) {
  GraphSession s;
  const Output fed = Placeholder(DType::kFloat, Shape(), {.name = "fed"});
  std::vector<Metric> made;
  const Output truths = Ones({2});
  {
    const ControlDependencies after({Identity(fed)});
    made = {metrics::Accuracy(truths, truths),
            metrics::RootMeanSquaredError(truths, truths),
            metrics::MeanIoU(truths, truths, 3),
            metrics::MeanPerClassAccuracy(truths, truths, 3),
            metrics::Precision(truths, truths),
            metrics::Auc(truths, truths),
            metrics::TruePositives(truths, truths),
            metrics::RecallAtThresholds(truths, truths, {0.5f}),
            metrics::SensitivityAtSpecificity(truths, truths, 0.5),
            metrics::MeanCosineDistance(truths, truths, 0),
            metrics::RecallAtK(Const({0, 1}), Ones({2, 3}), 1),
            metrics::AveragePrecisionAtK(Const({0, 1}), Ones({2, 3}), 1)};
  }
  ASSERT_OK(s.Run({}, {LocalVariablesInitializer()}).status());
  for (const Metric& metric : made) {
    EXPECT_OK(s.Run({metric.value}).status()) << metric.value.name();
    EXPECT_FALSE(s.Run({metric.update}).ok()) << metric.update.name();
  }
}

TEST(MetricsTest, LabelsMustFit) {
  GraphSession s;
  metrics::Accuracy(Zeros({3}), Zeros({2}));
  EXPECT_THAT(s.graph.error().message(),
              HasSubstr("labels of shape [3] do not fit predictions of [2]"));
}

TEST(MetricsTest, WeightsMustFit) {
  GraphSession s;
  metrics::Mean(Zeros({3}), {.weights = Zeros({2})});
  EXPECT_THAT(s.graph.error().message(),
              HasSubstr("weights of shape [2] cannot be broadcast to values of [3]"));
}

TEST(MetricsTest, AucTakesTwoThresholds) {
  GraphSession s;
  metrics::Auc(Zeros({3}), Zeros({3}), {.num_thresholds = 1});
  EXPECT_THAT(s.graph.error().message(), HasSubstr("Auc takes at least 2 thresholds, found 1"));
}

TEST(MetricsTest, RatesAreIn0To1AndHaveTwoThresholds) {
  {
    GraphSession s;
    metrics::SensitivityAtSpecificity(Zeros({3}), Zeros({3}), 1.5);
    EXPECT_THAT(s.graph.error().message(),
                HasSubstr("sensitivity_at_specificity takes a rate in [0, 1], found 1.5"));
  }
  GraphSession s;
  metrics::SpecificityAtSensitivity(Zeros({3}), Zeros({3}), 0.5, {.num_thresholds = 1});
  EXPECT_THAT(s.graph.error().message(),
              HasSubstr("specificity_at_sensitivity takes at least 2 thresholds, found 1"));
}

TEST(MetricsTest, AMeanTensorHasAKnownShape) {
  GraphSession s;
  metrics::MeanTensor(Placeholder(DType::kFloat, {-1}, {.name = "x"}));
  EXPECT_THAT(s.graph.error().message(), HasSubstr("a known shape, found [?]"));
}

}  // namespace
}  // namespace tenon::testing
