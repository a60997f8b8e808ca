// SPDX-License-Identifier: Apache-2.0
#include "ops/control_flow/control_flow_ops.h"

#include <gmock/gmock.h>

#include "core/build/loop_frame.h"
#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/state/state_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

class ControlFlowOpsTest : public ::testing::Test {
 protected:
  std::vector<Tensor> RunWith(const std::vector<Output>& fetches, bool value) {
    auto values = s.Run(fetches, {}, {{pred.name(), Tensor::Scalar(value)}});
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? *values : std::vector<Tensor>(fetches.size());
  }
  GraphSession s;
  Output pred = Placeholder(DType::kBool, PartialShape(Shape()));
  Output x = Const({3.0f, 4.0f});
};

TEST_F(ControlFlowOpsTest, MergeGivesTheBranchThatRanAndWhichItWas) {
  const SwitchOutputs sides = Switch(x, pred);
  const MergeOutputs merged =
      Merge({Mul(sides.output_false, sides.output_false), sides.output_true});
  auto values = RunWith({merged.output, merged.value_index}, false);
  EXPECT_THAT(Numbers(values[0]), ElementsAre(9, 16));
  EXPECT_EQ(values[1].scalar<int32_t>(), 0);
  values = RunWith({merged.output, merged.value_index}, true);
  EXPECT_THAT(Numbers(values[0]), ElementsAre(3, 4));
  EXPECT_EQ(values[1].scalar<int32_t>(), 1);
}

TEST_F(ControlFlowOpsTest, TheGradientIsThatOfTheBranchThatRan) {
  const SwitchOutputs sides = Switch(x, pred);
  const Output y = Merge({Mul(sides.output_false, sides.output_false), sides.output_true}).output;
  const std::vector<Output> grads = Gradients(y, x);
  ASSERT_OK(s.graph.error());
  EXPECT_THAT(Numbers(RunWith({grads[0]}, false)[0]), ElementsAre(6, 8));
  EXPECT_THAT(Numbers(RunWith({grads[0]}, true)[0]), ElementsAre(1, 1));
}

TEST_F(ControlFlowOpsTest, ABranchThatDoesNotUseXGivesZeros) {
  const SwitchOutputs sides = Switch(x, pred);
  const Output other = Switch(Const({1.0f, 1.0f}), pred).output_true;
  const Output y = Merge({Mul(sides.output_false, sides.output_false), other}).output;
  const std::vector<Output> grads = Gradients(y, x);
  ASSERT_OK(s.graph.error());
  EXPECT_THAT(Numbers(RunWith({grads[0]}, false)[0]), ElementsAre(6, 8));
  EXPECT_THAT(Numbers(RunWith({grads[0]}, true)[0]), ElementsAre(0, 0));
}

TEST_F(ControlFlowOpsTest, ReferencesGoThroughRefSwitch) {
  const Output v = VariableV2({}, DType::kFloat);
  const RefSwitchOutputs sides = RefSwitch(v, pred);
  ASSERT_OK(s.graph.error());
  const Output zero = Assign(sides.output_false, Const(0.0f));
  const Output one = Assign(sides.output_true, Const(1.0f));
  const Session::Feeds yes = {{pred.name(), Tensor::Scalar(true)}};
  ASSERT_OK(s.Run({}, {zero, one}, yes));
  EXPECT_EQ(s.Value(v).scalar<float>(), 1);
}

TEST_F(ControlFlowOpsTest, ThePredicateMustBeAScalar) {
  const Output vector = Placeholder(DType::kBool);
  const Output y = Switch(x, vector).output_true;
  EXPECT_THAT(s.Run({y}, {}, {{vector.name(), Tensor::Vector<bool>({true, false})}}),
              IsError(StatusCode::kInvalidArgument, "The second input must be a scalar"));
}

TEST_F(ControlFlowOpsTest, AReferenceIsChosen) {
  const Output a = VariableV2({}, DType::kFloat), b = VariableV2({}, DType::kFloat);
  const Output index = Placeholder(DType::kInt32);
  const Output chosen = AssignAdd(RefIdentity(RefSelect(index, {a, b})), 1.0f);
  ASSERT_OK(s.Run({}, {Assign(a, 10.0f), Assign(b, 20.0f)}));
  ASSERT_OK(s.Run({}, {chosen}, {{index.name(), Tensor::Scalar(1)}}));
  EXPECT_EQ(s.Value(a).scalar<float>(), 10);
  EXPECT_EQ(s.Value(b).scalar<float>(), 21);
  EXPECT_THAT(s.Run({}, {chosen}, {{index.name(), Tensor::Scalar(2)}}),
              IsError(StatusCode::kInvalidArgument, "[0, 2)"));
}

TEST_F(ControlFlowOpsTest, AbortEndsTheStepOnly) {
  Node* const abort = Abort({.error_msg = "wanted", .exit_without_error = true});
  EXPECT_THAT(s.Run({x}, {abort}), IsError(StatusCode::kAborted, "wanted"));
  ASSERT_OK(s.Run({x}));
}

/// while (i < 10) i += 3; the literals belong to the loop without more ado.
TEST_F(ControlFlowOpsTest, LiteralsInALoopAreOfTheLoop) {
  const Output i = Merge({Enter(0, "loop"), Enter(0, "loop")}).output;
  const auto [leaving, staying] = Switch(i, LoopCond(i < 10));
  ASSERT_OK(s.graph.Connect(NextIteration(staying + 3), i.node, 1));
  EXPECT_EQ(s.Value(Exit(leaving)).scalar<int32_t>(), 12);
}

TEST_F(ControlFlowOpsTest, WhatIsBuiltAfterALoopCostsNoMoreThanBefore) {
  Output y = Exit(Merge({Enter(0, "loop")}).output);
  for (int i = 0; i < 30000; ++i) y = Neg(y);  // each looked back to the loop: 10^9 nodes
  EXPECT_OK(s.graph.error());
  EXPECT_TRUE(LoopFrameOf(s.graph, *y.node).empty());
  EXPECT_EQ(LoopFrameOf(s.graph, *Enter(y, "next").node), "next");
}

TEST_F(ControlFlowOpsTest, LiteralsInTheInnerOfTwoLoops) {
  // for i in 0..2: for j in 0..3: sum += 10; what is summed up goes through both.
  const Output i = Merge({Enter(0, "outer"), Enter(0, "outer")}).output;
  const Output total = Merge({Enter(0, "outer"), Enter(0, "outer")}).output;
  const Output more = LoopCond(i < 3);
  const auto i_sides = Switch(i, more), total_sides = Switch(total, more);
  const Output j =
      Merge({Enter(i_sides.output_true * 0, "inner"), Enter(i_sides.output_true * 0, "inner")})
          .output;
  const Output sum =
      Merge({Enter(total_sides.output_true, "inner"), Enter(total_sides.output_true, "inner")})
          .output;
  const Output inner_more = LoopCond(j < 4);
  const auto j_sides = Switch(j, inner_more), sum_sides = Switch(sum, inner_more);
  ASSERT_OK(s.graph.Connect(NextIteration(j_sides.output_true + 1), j.node, 1));
  ASSERT_OK(s.graph.Connect(NextIteration(sum_sides.output_true + 10), sum.node, 1));
  ASSERT_OK(s.graph.Connect(NextIteration(i_sides.output_true + 1), i.node, 1));
  ASSERT_OK(s.graph.Connect(NextIteration(Exit(sum_sides.output_false)), total.node, 1));
  EXPECT_EQ(s.Value(Exit(total_sides.output_false)).scalar<int32_t>(), 120);
}

}  // namespace
}  // namespace tenon::testing
