// SPDX-License-Identifier: Apache-2.0
// Clipping of sparse gradients, warm-up, averages that begin late, and mistakes. That the rest is
// TensorFlow's is tests/interop/training_aids_test.py's.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/state/state_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"
#include "train/optimizers/adagrad.h"
#include "train/optimizers/clipping.h"
#include "train/optimizers/ftrl.h"
#include "train/optimizers/gradient_descent.h"
#include "train/optimizers/learning_rate_schedules.h"
#include "train/optimizers/moving_averages.h"

namespace tenon::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Gradient RowsGradient() {
  return IndexedSlices{Const({{3.0f, 0.0f}, {0.0f, -4.0f}}), Const({1, 0}), Const({2, 2})};
}

TEST(ClippingTest, TheRowsOfASparseGradientAreClipped) {
  GraphSession s;
  const Gradient rows = RowsGradient();
  const Gradient by_norm = ClipByNorm(rows, 2.5), by_value = ClipByValue(rows, -1, 2);
  ASSERT_TRUE(by_norm.is_sparse());
  ASSERT_TRUE(by_value.is_sparse());
  EXPECT_THAT(Numbers(s.Value(by_norm.ToDense())), ElementsAre(0, -2, 1.5, 0));
  EXPECT_THAT(Numbers(s.Value(by_value.ToDense())), ElementsAre(0, -1, 2, 0));
  EXPECT_FALSE(ClipByNorm(Gradient(), 1.0).exists());
}

TEST(ClippingTest, TheGlobalNormIsOfDenseAndSparseGradients) {
  GraphSession s;
  const Variable table("table", Ones({2, 2})), w("w", {0.0f}), unused("unused", 1.0f);
  const auto nodes = [](const Variable& v) { return *FindVariable(v.ref()); };
  const std::vector<GradientAndVariable> gradients = {{RowsGradient(), nodes(table)},
                                                      {Gradient(), nodes(unused)},
                                                      {Gradient(Const({12.0f})), nodes(w)}};
  const auto clipped = ClipByGlobalNorm(gradients, 6.5);
  EXPECT_TRUE(clipped[0].gradient.is_sparse());
  EXPECT_FALSE(clipped[1].gradient.exists());
  EXPECT_THAT(Numbers(s.Value(clipped[0].gradient.ToDense())), ElementsAre(0, -2, 1.5, 0));
  EXPECT_THAT(Numbers(s.Value(clipped[2].gradient.dense)), ElementsAre(6));
  Node* const train = GradientDescent(1.0).ApplyGradients(clipped);
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  ASSERT_OK(s.Run({}, {train}).status());
  EXPECT_THAT(Numbers(s.Value(table)), ElementsAre(1, 3, -0.5, 1));
}

TEST(SchedulesTest, AWarmUpReachesTheScheduleItIsAround) {
  GraphSession s;
  const Output step = Placeholder(DType::kInt64, Shape(), {.name = "step"});
  const Output decay = ExponentialDecay(0.8, step, 10, 0.5);
  const Output rate = LinearWarmUp(decay, step, 4, {.initial_learning_rate = 0.1});
  for (const int64_t t : {0, 1, 3, 4, 5, 20}) {
    const auto found = s.Run({rate}, {}, {{"step", Tensor::Scalar(t)}});
    ASSERT_OK(found.status());
    const double scheduled = 0.8 * std::pow(0.5, t / 10.0);
    const double wanted = 0.1 + (scheduled - 0.1) * std::min(t / 4.0, 1.0);
    EXPECT_THAT((*found)[0].scalar<float>(), ::testing::FloatNear(wanted, 1e-6)) << t;
  }
}

TEST(SchedulesTest, ARateOfTheStepThatIsTrained) {
  GraphSession s;
  const Variable w("w", 0.0f), step = GlobalStep();
  GradientDescent descent(PiecewiseConstant(step, {0, 2}, {1, 10, 100}));
  Node* const train = descent.Minimize(-Output(w), {.global_step = step});
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  for (const double wanted : {1, 11, 21, 121}) {
    ASSERT_OK(s.Run({}, {train}).status());
    EXPECT_THAT(Numbers(s.Value(w)), ElementsAre(wanted));
  }
}

TEST(MovingAveragesTest, AnAverageBeginsWithWhatTheVariableIs) {
  for (const bool resource : {false, true}) {
    GraphSession s;
    const Variable w("w", 1.0f, {.resource = resource});
    Node* const set = ChangeVariable(*FindVariable(w), "Assign", 5.0f);
    ASSERT_OK(s.Run({}, {GlobalVariablesInitializer({.name = "early"})}).status());
    ASSERT_OK(s.Run({}, {set}).status());
    ExponentialMovingAverage averages(0.75);
    Node* const update = averages.Apply();
    const Variable average = averages.Average(w);
    ASSERT_OK(s.Run({}, {FindVariable(average)->initializer}).status());
    EXPECT_THAT(Numbers(s.Value(average)), ElementsAre(5));
    ASSERT_OK(s.Run({}, {ChangeVariable(*FindVariable(w), "Assign", 9.0f)}).status());
    ASSERT_OK(s.Run({}, {update}).status());
    EXPECT_THAT(Numbers(s.Value(average)), ElementsAre(6));
    EXPECT_FALSE(averages.Average(average).ref().exists());
  }
}

TEST(MovingAveragesTest, ApplyingTwiceUpdatesTheSameAverages) {
  GraphSession s;
  const Variable w("w", 1.0f);
  ExponentialMovingAverage averages(0.5);
  averages.Apply();
  averages.Apply();
  EXPECT_EQ(s.graph.variables().size(), 2u);
}

TEST(OptimizersTest, MinimizingTwiceUsesTheSameSlots) {
  GraphSession s;
  const Variable w("w", 1.0f);
  Adagrad adagrad(0.1);
  EXPECT_EQ(adagrad.Minimize(Square(w))->name(), "Adagrad");
  EXPECT_EQ(adagrad.Minimize(Exp(w))->name(), "Adagrad_1");
  EXPECT_EQ(adagrad.variables().size(), 1u);
}

struct BuildingMistake {
  std::function<void(const Variable& w)> build;
  const char* message;
};

TEST(TrainingAidsTest, MistakesSayWhatWasFound) {
  const std::vector<BuildingMistake> mistakes = {
      {[](auto& w) {
         PiecewiseConstant(w, {1, 2}, {1, 2});
       },
       "a PiecewiseConstant of 2 boundaries takes 3 values, found 2"},
      {[](auto& w) {
         PiecewiseConstant(w, {2, 1}, {1, 2, 3});
       },
       "must grow"},
      {[](auto& w) { CosineDecayRestarts(0.1, w, 2, {.t_mul = 0.5}); },
       "t_mul of a CosineDecayRestarts must be at least 1, found 0.5"},
      {[](auto&) { GlobalNorm({Gradient()}); }, "no gradient to take the global norm of"},
      {[](auto& w) { ExponentialMovingAverage(0.9).Apply({Square(w)}); },
       "'Square', which is to be averaged, is of no Variable"},
      {[](auto&) { ExponentialMovingAverage(0.9).Apply({Variable("count", 0)}); },
       "averages are of floating point, 'count' is int32"},
      {[](auto& w) { Adagrad(0.1, {.initial_accumulator_value = 0}).Minimize(Square(w)); },
       "Adagrad: the initial accumulator value must be above 0, found 0"},
      {[](auto& w) { Ftrl(0.1, {.l1_regularization_strength = -1}).Minimize(Square(w)); },
       "Ftrl: l1_regularization_strength must be at least 0, found -1"},
      {[](auto& w) { AdagradDA(0.1, Output()).Minimize(Square(w)); },
       "the global step of an AdagradDA has no value"},
      {[](auto& w) {
         GradientDescent(0.1).ApplyGradients({{Gradient(), *FindVariable(w)}});
       },
       "no variable has a gradient, of those found: w"},
      {[](auto&) { GradientDescent(0.1).ApplyGradients({}); },
       "no variable has a gradient, of those found: none"},
  };
  for (const BuildingMistake& mistake : mistakes) {
    GraphSession s;
    const Variable w("w", 1.0f);
    mistake.build(w);
    EXPECT_THAT(s.graph.error().message(), HasSubstr(mistake.message));
    EXPECT_THAT(s.graph.error().message(), HasSubstr("training_aids_test.cc:"));
  }
}

}  // namespace
}  // namespace tenon::testing
