// SPDX-License-Identifier: Apache-2.0
#include "train/optimizers/gradient_accumulation.h"

#include <gmock/gmock.h>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"
#include "train/optimizers/adam.h"
#include "train/optimizers/gradient_descent.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

MATCHER(Near, "") { return std::abs(std::get<0>(arg) - std::get<1>(arg)) < 1e-6; }

/// A table of which each step gathers rows, and a dense variable.
struct TableModel {
  explicit TableModel(bool resource)
      : table("table", Ones({4, 2}), {.resource = resource}),
        w("w", {0.5f, -1.0f}, {.resource = resource}) {}

  Variable table, w;
  Output ids = Placeholder(DType::kInt32, {-1}, {.name = "ids"});
  Output loss = Sum(Square(GatherV2(table, ids, 0) * w));
};

Session::Feeds Ids(const std::vector<int32_t>& ids) { return {{"ids", Tensor::Vector(ids)}}; }

class GradientAccumulationTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Kinds, GradientAccumulationTest, ::testing::Bool());

TEST_P(GradientAccumulationTest, EveryNthStepIsOneOfTheMeanGradient) {
  GraphSession s;
  const TableModel m(GetParam());
  const Variable step("step", Const(0, {.dtype = DType::kInt64}),
                      {.trainable = false, .resource = GetParam()});
  Momentum momentum(0.1, 0.9);
  GradientAccumulation optimizer(momentum, 2);
  Node* train;
  {
    const NameScope scope("train");
    train = optimizer.Minimize(m.loss, {.global_step = step});
  }
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  const std::vector<double> start = Numbers(s.Value(m.table));

  // The same by hand: rows 0 and 1 have gradients, 3 in the second step only, and 2 in none.
  const auto gradients = SparseGradients(m.loss, {m.table.ref(), m.w.ref()});
  const auto first = s.Run({gradients[0].ToDense(), gradients[1].dense}, {}, Ids({0, 1, 1}));
  const auto second = s.Run({gradients[0].ToDense(), gradients[1].dense}, {}, Ids({3, 1}));
  ASSERT_OK(first.status());
  ASSERT_OK(second.status());
  ASSERT_OK(s.Run({}, {train}, Ids({0, 1, 1})).status());
  EXPECT_EQ(Numbers(s.Value(m.table)), start);
  EXPECT_THAT(Numbers(s.Value(step)), ElementsAre(0));
  ASSERT_OK(s.Run({}, {train}, Ids({3, 1})).status());
  EXPECT_THAT(Numbers(s.Value(step)), ElementsAre(1));
  const auto stepped = [&](std::vector<double> from, size_t which) {
    const std::vector<double> a = Numbers((*first)[which]), b = Numbers((*second)[which]);
    for (size_t i = 0; i < from.size(); ++i) from[i] -= 0.1 * (a[i] + b[i]) / 2;
    return from;
  };
  EXPECT_THAT(Numbers(s.Value(m.table)), Pointwise(Near(), stepped(start, 0)));
  EXPECT_THAT(Numbers(s.Value(m.w)), Pointwise(Near(), stepped({0.5, -1.0}, 1)));
  for (const std::string& slot : optimizer.SlotNames()) {
    for (double v : Numbers(s.Value(optimizer.GetSlot(m.table, slot)))) EXPECT_EQ(v, 0) << slot;
  }

  // In the second round rows 0 and 3 are not touched: Momentum's sparse step leaves them alone.
  const std::vector<double> between = Numbers(s.Value(m.table));
  for (int i = 0; i < 2; ++i) ASSERT_OK(s.Run({}, {train}, Ids({1})).status());
  const std::vector<double> end = Numbers(s.Value(m.table));
  for (const size_t i : {0, 1, 4, 5, 6, 7}) EXPECT_EQ(end[i], between[i]);
  EXPECT_NE(end[2], between[2]);
  EXPECT_THAT(Numbers(s.Value(step)), ElementsAre(2));
}

TEST_P(GradientAccumulationTest, TheOthersVariablesAreAsWithoutIt) {
  GraphSession s;
  const TableModel m(GetParam());
  Adam adam(0.5);
  GradientAccumulation optimizer(adam, 3);
  {
    const NameScope scope("train");
    optimizer.Minimize(m.loss);
  }
  std::vector<std::string> names;
  for (const VariableEntry& v : optimizer.variables()) names.push_back(v.ref->name());
  EXPECT_THAT(names, ElementsAre("table/Adam", "table/Adam_1", "table/GradientAccumulation",
                                 "table/GradientAccumulation_1", "train/accumulated_steps",
                                 "train/beta1_power", "train/beta2_power", "w/Adam", "w/Adam_1",
                                 "w/GradientAccumulation"));
}

TEST_P(GradientAccumulationTest, AdamStepsAfterThreeAsItDoesOnItsOwn) {
  std::vector<std::vector<double>> ends;
  for (const int steps : {1, 3}) {
    GraphSession s;
    const TableModel m(GetParam());
    Adam adam(0.1);
    GradientAccumulation optimizer(adam, steps);
    Node* const train = steps == 1 ? adam.Minimize(m.loss) : optimizer.Minimize(m.loss);
    ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
    for (int i = 0; i < 4 * steps; ++i) ASSERT_OK(s.Run({}, {train}, Ids({2, 0, 2})).status());
    ends.push_back(Numbers(s.Value(m.table)));
  }
  EXPECT_NE(ends[0], std::vector<double>(8, 1));
  EXPECT_THAT(ends[1], Pointwise(Near(), ends[0]));
}

TEST(GradientAccumulationInitTest, InitialisingWaitsForNothingThatWasEntered) {
  GraphSession s;
  const Variable w("w", 1.0f);
  const Output fed = Placeholder(DType::kFloat, Shape(), {.name = "fed"});
  Adam adam;
  GradientAccumulation optimizer(adam, 2);
  {
    const ControlDependencies after({Identity(fed)});
    optimizer.Minimize(Square(w));
  }
  EXPECT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
}

TEST(GradientAccumulationMistakesTest, NoStepIsTooFew) {
  GraphSession s;
  const Variable w("w", 1.0f);
  GradientDescent descent(0.1);
  GradientAccumulation optimizer(descent, 0);
  optimizer.Minimize(Square(w));
  EXPECT_THAT(s.graph.error().message(), HasSubstr("it takes at least 1 step, found 0"));
}

}  // namespace
}  // namespace tenon::testing
