// SPDX-License-Identifier: Apache-2.0
#include "train/variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/state/state_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(VariablesTest, BothKindsAreChangedByLiterals) {
  for (const bool resource : {false, true}) {
    testing::GraphSession s;
    const Variable v("v", {1.0f, 2.0f}, {.resource = resource});
    const VariableEntry* const nodes = FindVariable(v);
    ASSERT_NE(nodes, nullptr);
    EXPECT_EQ(nodes->is_resource(), resource);
    const Output added = ChangeVariable(*nodes, "AssignAdd", {1, 3});
    ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
    ASSERT_OK(s.Run({}, {added}).status());
    EXPECT_THAT(testing::Numbers(s.Value(v)), ElementsAre(2, 5));
  }
}

TEST(VariablesTest, LocalVariablesAreInitialisedApart) {
  testing::GraphSession s;
  const Variable w("w", 1.0f), count("count", 0.0f, {.local = true});
  const Output missing = ReportUninitializedVariables(),
               missing_local = ReportUninitializedVariables(true);
  Node* const init = GlobalVariablesInitializer();
  Node* const init_local = LocalVariablesInitializer();
  ASSERT_OK(s.Run({}, {init}).status());
  EXPECT_EQ(s.Value(missing).num_elements(), 0);
  EXPECT_EQ(s.Value(missing_local).scalar<TString>(), "count");
  ASSERT_OK(s.Run({}, {init_local}).status());
  EXPECT_EQ(s.Value(missing_local).num_elements(), 0);
}

TEST(VariablesTest, TheStepCounterIsMadeOnceAndOutsideOfWhatIsEntered) {
  testing::GraphSession s;
  const Variable w("w", 1.0f);
  Variable step;
  {
    const ControlDependencies after({AssignAdd(w.ref(), 5.0f)});
    step = GlobalStep();
  }
  EXPECT_EQ(GlobalStep().ref().name(), step.ref().name());
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  EXPECT_EQ(s.Value(step).scalar<int64_t>(), 0);
  EXPECT_EQ(s.Value(w).scalar<float>(), 1);
}

TEST(VariablesTest, AVariableMadeInALoopIsOutsideOfIt) {
  testing::GraphSession s;
  const Output end = WhileLoop(
      {0, 1.0f}, [](const auto& v) { return v[0] < 3; },
      [](const auto& v) {
        const Variable w("w", 2.0f);
        return std::vector<Output>{v[0] + 1, v[1] * w.value()};
      })[1];
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  EXPECT_EQ(s.Value(end).scalar<float>(), 8);
}

TEST(VariablesTest, AnInitialValueThatIsMadeWithinABranchIsAMistake) {
  testing::GraphSession s;
  const auto add = [](const Output& initial) {
    return Cond(
        Const(true), [&] { return Variable("w", initial).value() * 2; },
        [] { return Const(0.0f); });
  };
  const Output y = add(Const(3.0f) * 2);
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  EXPECT_EQ(s.Value(y).scalar<float>(), 12);
  Cond(
      Const(true), [] { return Variable("w", Const(3.0f) * 2).value(); },
      [] { return Const(0.0f); });
  EXPECT_THAT(std::string(s.graph.error().message()),
              ::testing::HasSubstr("is made within a branch or loop, and the variable outside"));
}

}  // namespace
}  // namespace tenon
