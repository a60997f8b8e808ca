// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/sdca/losses.h"
#include "ops/sdca/sdca_ops.h"
#include "ops/state/state_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

constexpr int kExamples = 40, kFeatures = 3;

/// Examples of a linear model with noise, and its weights.
struct Problem {
  explicit Problem(std::string loss_name, float regularisation = 1)
      : loss(std::move(loss_name)), l2(regularisation) {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    const float truth[kFeatures] = {1, -0.5, 0.25};
    for (int i = 0; i < kExamples; ++i) {
      float sum = 0.3f * normal(random);
      for (int k = 0; k < kFeatures; ++k) {
        features.push_back(normal(random));
        sum += features.back() * truth[k];
      }
      labels.push_back(loss == "squared_loss"   ? sum
                       : loss == "poisson_loss" ? std::floor(std::exp(sum))
                       : sum > 0                ? 1.0f
                                                : 0.0f);
      weights.push_back(i % 4 == 0 ? 2.0f : 1.0f);
    }
  }

  /// Passes over all examples; returns the weights.
  std::vector<double> Train(int passes, bool adaptive, float l1 = 0) {
    Tensor state = Tensor::Zeros(DType::kFloat, {kExamples, 4});
    Tensor w = Tensor::Zeros(DType::kFloat, {kFeatures});
    const Tensor x = Tensor::Of<float>({kExamples, kFeatures}, features);
    GraphSession s;
    const Output state_in = Placeholder(DType::kFloat), w_in = Placeholder(DType::kFloat);
    const auto step =
        SdcaOptimizerV2({}, {}, {}, {Const(x)}, Tensor::Vector(weights), Tensor::Vector(labels), {},
                        {}, {w_in}, state_in, loss, l1, l2, 1, 1, {.adaptive = adaptive});
    for (int pass = 0; pass < passes; ++pass) {
      const auto values = s.Run({step.out_example_state_data, step.out_delta_dense_weights[0]}, {},
                                {{state_in.name(), state}, {w_in.name(), w}});
      EXPECT_OK(values);
      if (!values.ok()) break;
      state = (*values)[0];
      w = *w.Copy();
      for (int k = 0; k < kFeatures; ++k) w.data<float>()[k] += (*values)[1].data<float>()[k];
    }
    states = state;
    return Numbers(w);
  }

  /// The regularised loss.
  double Objective(const std::vector<double>& w, double l1 = 0) const {
    const auto made = *DualLoss::Create(loss);
    double sum = 0;
    for (int i = 0; i < kExamples; ++i) {
      double prediction = 0;
      for (int k = 0; k < kFeatures; ++k) prediction += w[k] * features[i * kFeatures + k];
      sum += weights[i] * made->Primal(prediction, *made->Label(labels[i]));
    }
    for (const double v : w) sum += 0.5 * l2 * v * v + l1 * std::fabs(v);
    return sum;
  }

  const std::string loss;
  const float l2;
  std::vector<float> features, labels, weights;
  Tensor states;
};

TEST(SdcaTest, WeightsOfEveryLossAreTheBest) {
  for (const char* loss :
       {"squared_loss", "logistic_loss", "smooth_hinge_loss", "hinge_loss", "poisson_loss"}) {
    for (const bool adaptive : {false, true}) {
      Problem problem(loss);
      const std::vector<double> w = problem.Train(200, adaptive);
      const double found = problem.Objective(w);
      for (int k = 0; k < kFeatures; ++k) {
        for (const double by : {-0.02, 0.02}) {
          std::vector<double> other = w;
          other[k] += by;
          EXPECT_GT(problem.Objective(other), found - 1e-4) << loss << " " << adaptive << " " << k;
        }
      }
    }
  }
}

TEST(SdcaTest, PrimalAndDualLossMeet) {
  for (const char* loss : {"squared_loss", "logistic_loss", "smooth_hinge_loss", "poisson_loss"}) {
    Problem problem(loss);
    const std::vector<double> w = problem.Train(1000, false);
    double gap = 0;
    for (int i = 0; i < kExamples; ++i) {
      gap += problem.states.data<float>()[4 * i + 1] + problem.states.data<float>()[4 * i + 2];
    }
    for (const double v : w) gap += problem.l2 * v * v;
    EXPECT_NEAR(gap, 0, 1e-3) << loss;
  }
}

TEST(SdcaTest, ShrunkenWeightsAreTheBestOfL1) {
  Problem problem("squared_loss");
  const float l1 = 20;
  std::vector<double> w = problem.Train(300, false, l1);
  GraphSession s;
  const Output variable = VariableV2(PartialShape{kFeatures}, DType::kFloat);
  Tensor unshrunken(DType::kFloat, {kFeatures});
  for (int k = 0; k < kFeatures; ++k) unshrunken.data<float>()[k] = static_cast<float>(w[k]);
  const Output set = Assign(variable, Const(unshrunken));
  ASSERT_OK(s.Run({}, {set}));
  const auto shrink = SdcaShrinkL1({variable}, l1, problem.l2);
  ASSERT_OK(s.Run({}, {Output(shrink)}));
  w = Numbers(s.Value(Identity(variable)));
  EXPECT_EQ(w[2], 0);
  const double found = problem.Objective(w, l1);
  for (int k = 0; k < kFeatures; ++k) {
    for (const double by : {-0.02, 0.02}) {
      std::vector<double> other = w;
      other[k] += by;
      EXPECT_GT(problem.Objective(other, l1), found - 1e-4) << k;
    }
  }
}

/// The outputs of one pass over two examples with the features 7 and 9 of a group.
OpResult Sparse(const std::vector<int64_t>& examples, const std::vector<int64_t>& features,
                const std::vector<float>& values, AttributeMap attrs = {}) {
  std::vector<Tensor> inputs = {Tensor::Vector(examples), Tensor::Vector(features)};
  if (!values.empty()) inputs.push_back(Tensor::Vector(values));
  for (const Tensor& t : {Tensor::Vector<float>({1, 1}), Tensor::Vector<float>({1, 0}),
                          Tensor::Vector<int64_t>({9, 7}), Tensor::Vector<float>({0, 0}),
                          Tensor::Zeros(DType::kFloat, {2, 4})}) {
    inputs.push_back(t);
  }
  attrs.Set("num_sparse_features", 1);
  attrs.Set("num_sparse_features_with_values", values.empty() ? 0 : 1);
  attrs.Set("num_dense_features", 0);
  if (attrs.Find("loss_type") == nullptr) attrs.Set("loss_type", "squared_loss");
  if (attrs.Find("l2") == nullptr) attrs.Set("l2", 1.0f);
  attrs.Set("l1", 0.0f);
  attrs.Set("num_loss_partitions", 1);
  attrs.Set("num_inner_iterations", 1);
  return RunOp("SdcaOptimizerV2", inputs, attrs);
}

TEST(SdcaTest, SparseFeaturesFindTheirWeights) {
  // Each example has a feature of its own, so that the order does not matter: with label y and
  // value x the dual is y / (1 + x^2), and the weight x times that.
  OpResult r = Sparse({0, 1}, {7, 9}, {2, 3});
  ASSERT_OK(r.status);
  EXPECT_THAT(Numbers(r.outputs[1]), ElementsAre(0, ::testing::DoubleNear(0.4, 1e-6)));
  r = Sparse({0}, {9}, {});
  ASSERT_OK(r.status);
  EXPECT_THAT(Numbers(r.outputs[1]), ElementsAre(0.5, 0));
  EXPECT_THAT(Numbers(r.outputs[0]), ElementsAre(0.5, 0.5, 0, 1, 0, 0, 0, 1));
}

TEST(SdcaTest, WhatDoesNotFitIsRefused) {
  const auto refused = [](const OpResult& r, std::string_view why) {
    EXPECT_THAT(r.status, IsError(StatusCode::kInvalidArgument, why));
  };
  refused(Sparse({0, 1}, {7}, {}), "Found mismatched example_indices");
  refused(Sparse({0, 1}, {7, 9}, {1}), "Found mismatched example_indices");
  refused(Sparse({1, 0}, {7, 9}, {}), "must go up and be less than 2, found 0 at 1");
  refused(Sparse({0, 2}, {7, 9}, {}), "less than 2, found 2");
  refused(Sparse({-1}, {7}, {}), "found -1");
  refused(Sparse({0}, {8}, {}), "out of valid range: 8");
  refused(Sparse({0, 0}, {7, 7}, {}), "Duplicate index");
  refused(
      RunOp("SdcaOptimizerV2",
            {Tensor::Vector<int64_t>({0}), Tensor::Vector<int64_t>({7}), Tensor::Vector<float>({1}),
             Tensor::Vector<float>({1}), Tensor::Vector<int64_t>({7, 9}),
             Tensor::Vector<float>({0}), Tensor::Zeros(DType::kFloat, {1, 4})},
            {{"num_sparse_features", 1},
             {"num_sparse_features_with_values", 0},
             {"num_dense_features", 0},
             {"loss_type", "squared_loss"},
             {"l1", 0.0f},
             {"l2", 1.0f},
             {"num_loss_partitions", 1},
             {"num_inner_iterations", 1}}),
      "sparse_indices and sparse_weights must have one length, found shapes [2] and [1]");
  refused(Sparse({0}, {7}, {}, {{"l2", 0.0f}}), "l2 must be positive");
  refused(Sparse({0}, {7}, {}, {{"loss_type", "absolute"}}), "loss_type");
}

TEST(SdcaTest, LabelsThatALossHasNotAreRefused) {
  EXPECT_FALSE((*DualLoss::Create("logistic_loss"))->Label(0.5).ok());
  EXPECT_FALSE((*DualLoss::Create("poisson_loss"))->Label(-1).ok());
  EXPECT_EQ(*(*DualLoss::Create("hinge_loss"))->Label(0), -1);
  EXPECT_EQ(*(*DualLoss::Create("squared_loss"))->Label(-7), -7);
}

}  // namespace
}  // namespace tenon::testing
