// SPDX-License-Identifier: Apache-2.0
// Gradients of losses by finite differences, and mistakes. That the values are TensorFlow's is
// tests/interop/losses_test.py's.
#include "train/losses.h"

#include <gmock/gmock.h>

#include <functional>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using losses::Reduction;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Doubles(const std::vector<double>& values, const Shape& shape) {
  Tensor t(DType::kDouble, shape);
  std::copy(values.begin(), values.end(), t.data<double>());
  return t;
}

using LossOf =
    std::function<Output(const Output& labels, const Output& predictions, const Output& weights)>;

struct LossCase {
  const char* name;
  LossOf loss;
};

std::vector<LossCase> LossCases() {
  std::vector<LossCase> cases;
  for (const Reduction r : {Reduction::kSum, Reduction::kMean, Reduction::kSumOverBatchSize,
                            Reduction::kSumByNonzeroWeights}) {
    cases.push_back({"AbsoluteDifference", [r](auto& l, auto& p, auto& w) {
                       return losses::AbsoluteDifference(l, p, {.weights = w, .reduction = r});
                     }});
    cases.push_back({"HuberLoss", [r](auto& l, auto& p, auto& w) {
                       return losses::HuberLoss(l, p, {.weights = w, .delta = 0.3, .reduction = r});
                     }});
    cases.push_back({"SigmoidCrossEntropy", [r](auto& l, auto& p, auto& w) {
                       return losses::SigmoidCrossEntropy(
                           l, p, {.weights = w, .label_smoothing = 0.1, .reduction = r});
                     }});
  }
  cases.push_back({"MeanSquaredError", [](auto& l, auto& p, auto& w) {
                     return losses::MeanSquaredError(l, p, {.weights = w});
                   }});
  cases.push_back({"HingeLoss", [](auto& l, auto& p, auto& w) {
                     return losses::HingeLoss(l, p, {.weights = w});
                   }});
  cases.push_back(
      {"LogLoss", [](auto& l, auto& p, auto& w) { return losses::LogLoss(l, p, {.weights = w}); }});
  cases.push_back({"MeanPairwiseSquaredError", [](auto& l, auto& p, auto& w) {
                     return losses::MeanPairwiseSquaredError(l, p, {.weights = w});
                   }});
  cases.push_back({"CosineDistance", [](auto& l, auto& p, auto& w) {
                     return losses::CosineDistance(l, p, 1, {.weights = w});
                   }});
  cases.push_back({"SoftmaxCrossEntropy", [](auto& l, auto& p, auto& w) {
                     const Output rows = Squeeze(w, {.squeeze_dims = {1}});
                     return losses::SoftmaxCrossEntropy(l, p,
                                                        {.weights = rows, .label_smoothing = 0.2});
                   }});
  cases.push_back({"SparseSoftmaxCrossEntropy", [](auto& l, auto& p, auto& w) {
                     return losses::SparseSoftmaxCrossEntropy(ArgMax(l, 1), p, {.weights = w});
                   }});
  return cases;
}

TEST(LossesTest, GradientsAreFiniteDifferences) {
  const std::vector<double> start = {0.2, 0.9, 0.4, 0.7, 0.15, 0.55, 0.35, 0.8, 0.6};
  const Tensor labels = Doubles({0, 1, 0, 1, 0, 0, 0, 0, 1}, {3, 3});
  const Tensor weights = Doubles({1.5, 0, 0.5}, {3, 1});
  for (const LossCase& c : LossCases()) {
    GraphSession s;
    const Output x = Placeholder(DType::kDouble, {3, 3}, {.name = "x"});
    const Output loss = c.loss(Const(labels), x, Const(weights));
    ASSERT_OK(s.graph.error()) << c.name;
    EXPECT_EQ(loss.dtype(), DType::kDouble);
    const Output dx = Gradients(loss, {x})[0];
    const auto at = [&](const std::vector<double>& values, const Output& fetch) {
      const auto found = s.Run({fetch}, {}, {{"x", Doubles(values, {3, 3})}});
      EXPECT_OK(found.status()) << c.name;
      return Numbers((*found)[0]);
    };
    const std::vector<double> gradient = at(start, dx);
    double largest = 0;
    for (size_t i = 0; i < start.size(); ++i) {
      std::vector<double> more = start, less = start;
      const double step = 1e-5;
      more[i] += step;
      less[i] -= step;
      const double slope = (at(more, loss)[0] - at(less, loss)[0]) / (2 * step);
      EXPECT_NEAR(gradient[i], slope, 1e-6) << c.name << ", element " << i;
      largest = std::max(largest, std::abs(slope));
    }
    EXPECT_GT(largest, 0.01) << c.name;
  }
}

TEST(LossesTest, TheTotalHasLossesAndRegularization) {
  GraphSession s;
  const Output x = Const({1.0f, 3.0f});
  losses::MeanSquaredError({0.0f, 0.0f}, x);
  {
    const NameScope scope("tower");
    losses::AbsoluteDifference({0.0f, 0.0f}, x);
  }
  losses::AddLoss(Const(10.0f));
  losses::MeanSquaredError({0.0f, 0.0f}, x, {.loss_collection = ""});
  s.graph.Collection("regularization_losses").push_back(Const(100.0f));
  EXPECT_EQ(losses::GetLosses().size(), 3u);
  EXPECT_EQ(losses::GetLosses()[0].name(), "mean_squared_error/value");
  EXPECT_EQ(s.Value(losses::GetTotalLoss()).scalar<float>(), 5 + 2 + 10 + 100);
  EXPECT_EQ(s.Value(losses::GetTotalLoss({.add_regularization_losses = false})).scalar<float>(),
            17);
  EXPECT_EQ(s.Value(losses::GetTotalLoss({.scope = "tower"})).scalar<float>(), 2);
  EXPECT_EQ(s.Value(losses::GetRegularizationLoss()).scalar<float>(), 100);
}

TEST(LossesTest, WithoutRegularizationItsLossIs0) {
  GraphSession s;
  EXPECT_EQ(s.Value(losses::GetRegularizationLoss()).scalar<float>(), 0);
}

TEST(LossesTest, NoLossHasNoTotal) {
  GraphSession s;
  losses::GetTotalLoss();
  EXPECT_THAT(s.graph.error().message(), HasSubstr("the graph has no loss to be added up"));
}

TEST(LossesTest, ShapesOfLabelsMustFit) {
  GraphSession s;
  losses::MeanSquaredError(Zeros({3}), Zeros({2}));
  EXPECT_THAT(s.graph.error().message(),
              HasSubstr("labels of shape [3] do not fit predictions of [2]"));
}

TEST(LossesTest, WeightsHaveTheRankOfTheLosses) {
  GraphSession s;
  losses::MeanSquaredError(Zeros({2, 3}), Zeros({2, 3}), {.weights = Zeros({3})});
  EXPECT_THAT(s.graph.error().message(),
              HasSubstr("weights of shape [3] cannot be broadcast to values of [2,3]"));
}

TEST(LossesTest, WeightsOfUnknownShapeAreCheckedInTheStep) {
  GraphSession s;
  const Output x = Placeholder(DType::kFloat, {-1, 1}, {.name = "x"});
  const Output w = Placeholder(DType::kFloat, {-1, 3}, {.name = "w"});
  const Output loss = losses::MeanSquaredError(ZerosLike(x), x, {.weights = w});
  const Tensor ones = Tensor::Of<float>({2, 1}, {1, 1});
  EXPECT_FALSE(
      s.Run({loss}, {}, {{"x", ones}, {"w", Tensor::Of<float>({2, 3}, {1, 1, 1, 1, 1, 1})}}).ok());
}

TEST(LossesTest, WeightsOf0GiveALossOf0) {
  for (const Reduction r : {Reduction::kMean, Reduction::kSumByNonzeroWeights}) {
    GraphSession s;
    const Output loss =
        losses::MeanSquaredError(Zeros({2}), Ones({2}), {.weights = 0, .reduction = r});
    EXPECT_EQ(s.Value(loss).scalar<float>(), 0);
  }
}

}  // namespace
}  // namespace tenon::testing
