// SPDX-License-Identifier: Apache-2.0
// What optimizers build. That their steps are TensorFlow's is tests/interop/optimizers_test.py's.
#include "train/optimizers/optimizer.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/state/state_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"
#include "train/optimizers/adam.h"
#include "train/optimizers/gradient_descent.h"
#include "train/optimizers/learning_rate_schedules.h"
#include "train/optimizers/rmsprop.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<double> After(GraphSession& s, Node* init, Node* train, const Output& value,
                          int steps = 1, const Session::Feeds& feeds = {}) {
  EXPECT_OK(s.Run({}, {init}).status());
  for (int i = 0; i < steps; ++i) EXPECT_OK(s.Run({}, {train}, feeds).status());
  return Numbers(s.Value(value));
}

TEST(OptimizersTest, UpdatesAreWithinTheScopeThatWasEntered) {
  GraphSession s;
  const Variable w("w", {1.0f, 2.0f});
  Node* train;
  {
    const NameScope scope("train");
    train = GradientDescent(0.5).Minimize(Sum(Square(w)));
  }
  EXPECT_EQ(train->name(), "train/GradientDescent");
  EXPECT_NE(s.graph.Find("train/GradientDescent/update_w/ApplyGradientDescent"), nullptr);
  EXPECT_NE(s.graph.Find("train/GradientDescent/learning_rate"), nullptr);
  EXPECT_THAT(After(s, GlobalVariablesInitializer(), train, w), ElementsAre(0, 0));
}

TEST(OptimizersTest, ASecondOptimizerOfANameHasAScopeAndSlotsOfItsOwn) {
  GraphSession s;
  const NameScope scope("model");
  const Variable w("w", {1.0f, 2.0f});
  Adam first, second;
  EXPECT_EQ(first.Minimize(Sum(Square(w)))->name(), "model/Adam");
  EXPECT_EQ(second.Minimize(Sum(Square(w)))->name(), "model/Adam_1");
  EXPECT_THAT(second.SlotNames(), ElementsAre("m", "v"));
  EXPECT_EQ(first.GetSlot(w, "v").ref().name(), "model/w/Adam_1");
  EXPECT_EQ(second.GetSlot(w, "m").ref().name(), "model/w/Adam_2");
  EXPECT_FALSE(second.GetSlot(w, "momentum").ref().exists());
  std::vector<std::string> names;
  for (const VariableEntry& v : second.variables()) names.push_back(v.ref->name());
  EXPECT_THAT(names, ElementsAre("model/beta1_power_1", "model/beta2_power_1", "model/w/Adam_2",
                                 "model/w/Adam_3"));
}

TEST(OptimizersTest, SlotsAreBesideTheirVariableAndOfItsKindAndPart) {
  GraphSession s;
  Variable w;
  {
    const DeviceScope device("/job:ps/task:1");
    w = Variable("w/part_1", Zeros({2, 3}),
                 {.resource = true, .part = VariablePart{"w", {4, 3}, {2, 0}, {2, 3}}});
  }
  Adam adam;
  adam.Minimize(Sum(Square(w)));
  const VariableEntry* const v = FindVariable(adam.GetSlot(w, "v").ref());
  ASSERT_NE(v, nullptr);
  EXPECT_EQ(v->ref->name(), "w/part_1/Adam_1");
  EXPECT_EQ(v->ref->requested_device(), "/job:ps/task:1");
  EXPECT_TRUE(v->is_resource());
  EXPECT_FALSE(v->trainable);
  ASSERT_TRUE(v->part.has_value());
  EXPECT_EQ(v->part->name, "w/Adam_1");
  EXPECT_THAT(v->part->begin, ElementsAre(2, 0));
  EXPECT_EQ(s.graph.Find("Adam/update_w/part_1/ResourceApplyAdam")->requested_device(),
            "/job:ps/task:1");
}

TEST(OptimizersTest, VariablesWithoutAGradientStay) {
  GraphSession s;
  const Variable w("w", 3.0f), unused("unused", 4.0f), fixed("fixed", 5.0f, {.trainable = false});
  Adam adam(1.0);
  const auto gradients = adam.ComputeGradients(Square(w) + fixed);
  ASSERT_EQ(gradients.size(), 2u);
  EXPECT_TRUE(gradients[0].gradient.exists());
  EXPECT_FALSE(gradients[1].gradient.exists());
  Node* const train = adam.ApplyGradients(gradients);
  EXPECT_THAT(After(s, GlobalVariablesInitializer(), train, Pack({w, unused, fixed})),
              ElementsAre(::testing::DoubleNear(2, 1e-5), 4, 5));
  EXPECT_FALSE(adam.GetSlot(unused, "m").ref().exists());
}

TEST(OptimizersTest, ALossThatDependsOnNoVariableIsAMistake) {
  GraphSession s;
  const Variable w("w", 3.0f), v("v", 3.0f);
  EXPECT_EQ(GradientDescent(0.1).Minimize(Const(1.0f, {.name = "one"})), FailedNode());
  EXPECT_THAT(s.graph.error().message(), HasSubstr("'one' depends through differentiable ops on no "
                                                   "variable of: w, v"));
}

TEST(OptimizersTest, WhatIsNoVariableCannotBeTrained) {
  GraphSession s;
  const Variable w("w", 3.0f);
  const Output x = Square(w);
  GradientDescent(0.1).Minimize(x, {.variables = {x}});
  EXPECT_THAT(s.graph.error().message(), HasSubstr("'Square', which is to be trained, is of no"));
}

TEST(OptimizersTest, NumbersWithoutMeaningAreMistakes) {
  const auto mistake = [](const std::function<void(const Output& loss)>& train) {
    GraphSession s;
    const Variable w("w", 3.0f);
    train(Square(w));
    return std::string(s.graph.error().message());
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(
      mistake([](const Output& loss) { GradientDescent(-0.1).Minimize(loss); }),
      HasSubstr("GradientDescent: learning_rate must be at least 0, and finite, found -0.1"));
  EXPECT_THAT(mistake([&](const Output& loss) { GradientDescent(nan).Minimize(loss); }),
              HasSubstr("found nan"));
  EXPECT_THAT(mistake([](const Output& loss) { Momentum(0.1, -0.9).Minimize(loss); }),
              HasSubstr("Momentum: momentum must be at least 0"));
  EXPECT_THAT(mistake([](const Output& loss) { Adam(0.1, {.beta2 = 1.0}).Minimize(loss); }),
              HasSubstr("Adam: beta2 must be in [0, 1), found 1"));
  EXPECT_THAT(mistake([](const Output& loss) { RMSProp(0.1, {.decay = 1.5}).Minimize(loss); }),
              HasSubstr("RMSProp: decay must be in [0, 1), found 1.5"));
  EXPECT_THAT(
      mistake([](const Output& loss) {
        GradientDescent(ExponentialDecay(0.1, GlobalStep(), 0, 0.9)).Minimize(loss);
      }),
      HasSubstr("the number of steps of a learning rate's schedule must be above 0, found 0"));
  EXPECT_THAT(mistake([](const Output& loss) {
                GradientDescent(CosineDecay(0.1, GlobalStep(), -5)).Minimize(loss);
              }),
              HasSubstr("must be above 0, found -5"));
  // A rate of 0 freezes what is trained, and one that is known in the step only is not looked at.
  EXPECT_EQ(mistake([](const Output& loss) { GradientDescent(0.0).Minimize(loss); }), "");
  EXPECT_EQ(mistake([](const Output& loss) {
              GradientDescent(Placeholder(DType::kFloat, Shape())).Minimize(loss);
            }),
            "");
}

TEST(OptimizersTest, TheGlobalStepCountsAfterTheUpdates) {
  for (const bool resource : {false, true}) {
    GraphSession s;
    const Variable w("w", 1.0f, {.resource = resource});
    const Variable step("step", Const(0, {.dtype = DType::kInt64}),
                        {.trainable = false, .resource = resource});
    Node* const train = GradientDescent(0.25).Minimize(Square(w), {.global_step = step});
    EXPECT_EQ(train->op(), resource ? "AssignAddVariableOp" : "AssignAdd");
    Node* const by_reference =
        GradientDescent(0.25).Minimize(Square(w), {.global_step = step.ref()});
    EXPECT_THAT(After(s, GlobalVariablesInitializer(), train, step, 3), ElementsAre(3));
    EXPECT_THAT(After(s, GlobalVariablesInitializer(), by_reference, w, 2), ElementsAre(0.25));
  }
}

TEST(OptimizersTest, RatesMayBeFed) {
  GraphSession s;
  const Variable w("w", Const(8.0, {.dtype = DType::kDouble}));
  const Output rate = Placeholder(DType::kFloat, Shape(), {.name = "rate"});
  Node* const train = GradientDescent(rate).Minimize(Square(w) / 2);
  Node* const init = GlobalVariablesInitializer();
  EXPECT_THAT(After(s, init, train, w, 2, {{"rate", Tensor::Scalar(0.5f)}}), ElementsAre(2));
}

TEST(OptimizersTest, RowsThatOccurTwiceCountTwice) {
  for (const bool resource : {false, true}) {
    GraphSession s;
    const Variable table("table", Ones({4, 2}), {.resource = resource});
    const Output loss = Sum(GatherV2(table, {1, 3, 1}, 0));
    GradientDescent descent(0.5);
    const auto gradients = descent.ComputeGradients(loss);
    EXPECT_TRUE(gradients[0].gradient.is_sparse());
    Node* const train = descent.ApplyGradients(gradients);
    EXPECT_THAT(After(s, GlobalVariablesInitializer(), train, table),
                ElementsAre(1, 1, 0, 0, 1, 1, 0.5, 0.5));
  }
}

TEST(OptimizersTest, SumsOfRepeatedRowsAreWhatTheDenseGradientHas) {
  GraphSession s;
  const Variable table("table", Ones({3, 2}));
  const auto gradient =
      GradientDescent(1).ComputeGradients(Sum(Exp(GatherV2(table, {2, 0, 2}, 0))))[0].gradient;
  const Gradient once = WithoutRepeatedRows(gradient);
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  const auto values = s.Run({once.slices.indices, gradient.ToDense() - once.ToDense()});
  ASSERT_OK(values.status());
  EXPECT_THAT(Numbers((*values)[0]), ElementsAre(2, 0));
  EXPECT_THAT(Numbers((*values)[1]), ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(OptimizersTest, UpdatesWaitForWhatWasEntered) {
  GraphSession s;
  const Variable w("w", 1.0f), other("other", 1.0f, {.trainable = false});
  Node* train;
  {
    const ControlDependencies first({AssignAdd(other.ref(), 2.0f)});
    train = GradientDescent(0.5).Minimize(Square(w));
  }
  EXPECT_THAT(After(s, GlobalVariablesInitializer(), train, other), ElementsAre(3));
}

TEST(OptimizersTest, DecoupledDecayIsNoPartOfAdamsStep) {
  GraphSession s;
  const Variable w("w", 1.0f), bias("bias", 1.0f);
  AdamW adam(0.1, {.weight_decay = 0.5, .without_decay = {bias}});
  Node* const train = adam.Minimize(w + bias);
  EXPECT_EQ(adam.GetSlot(w, "m").ref().name(), "w/AdamW");
  // A gradient of 1 moves by the rate, whatever its size.
  EXPECT_THAT(After(s, GlobalVariablesInitializer(), train, Pack({w, bias})),
              ElementsAre(::testing::DoubleNear(1 - 0.05 - 0.1, 1e-5),
                          ::testing::DoubleNear(1 - 0.1, 1e-5)));
}

}  // namespace
}  // namespace tenon::testing
