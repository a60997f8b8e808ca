// SPDX-License-Identifier: Apache-2.0
#include "ops/control_flow_ops.h"

#include <gmock/gmock.h>

#include "core/gradients.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/state_ops.h"
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
  Output pred = Placeholder(s.root, DType::kBool, PartialShape(Shape()));
  Output x = Const(s.root, {3.0f, 4.0f});
};

TEST_F(ControlFlowOpsTest, MergeGivesTheBranchThatRanAndWhichItWas) {
  const SwitchOutputs sides = Switch(s.root, x, pred);
  const MergeOutputs merged =
      Merge(s.root, {Mul(s.root, sides.output_false, sides.output_false), sides.output_true});
  auto values = RunWith({merged.output, merged.value_index}, false);
  EXPECT_THAT(Numbers(values[0]), ElementsAre(9, 16));
  EXPECT_EQ(values[1].scalar<int32_t>(), 0);
  values = RunWith({merged.output, merged.value_index}, true);
  EXPECT_THAT(Numbers(values[0]), ElementsAre(3, 4));
  EXPECT_EQ(values[1].scalar<int32_t>(), 1);
}

TEST_F(ControlFlowOpsTest, TheGradientIsThatOfTheBranchThatRan) {
  const SwitchOutputs sides = Switch(s.root, x, pred);
  const Output y =
      Merge(s.root, {Mul(s.root, sides.output_false, sides.output_false), sides.output_true})
          .output;
  std::vector<Output> grads;
  ASSERT_OK(AddGradients(s.root, {y}, {x}, {}, &grads));
  EXPECT_THAT(Numbers(RunWith({grads[0]}, false)[0]), ElementsAre(6, 8));
  EXPECT_THAT(Numbers(RunWith({grads[0]}, true)[0]), ElementsAre(1, 1));
}

TEST_F(ControlFlowOpsTest, ABranchThatDoesNotUseXGivesZeros) {
  const SwitchOutputs sides = Switch(s.root, x, pred);
  const Output other = Switch(s.root, Const(s.root, {1.0f, 1.0f}), pred).output_true;
  const Output y =
      Merge(s.root, {Mul(s.root, sides.output_false, sides.output_false), other}).output;
  std::vector<Output> grads;
  ASSERT_OK(AddGradients(s.root, {y}, {x}, {}, &grads));
  EXPECT_THAT(Numbers(RunWith({grads[0]}, false)[0]), ElementsAre(6, 8));
  EXPECT_THAT(Numbers(RunWith({grads[0]}, true)[0]), ElementsAre(0, 0));
}

TEST_F(ControlFlowOpsTest, ReferencesGoThroughRefSwitch) {
  const Output v = VariableV2(s.root, {}, DType::kFloat);
  const std::vector<Output> sides = s.root.Op("RefSwitch").Input(v).Input(pred).Outputs();
  ASSERT_EQ(sides.size(), 2u) << s.root.status();
  const Output zero = Assign(s.root, sides[0], Const(s.root, 0.0f));
  const Output one = Assign(s.root, sides[1], Const(s.root, 1.0f));
  const Session::Feeds yes = {{pred.name(), Tensor::Scalar(true)}};
  ASSERT_OK(s.Run({}, {zero, one}, yes));
  EXPECT_EQ(s.Value(v).scalar<float>(), 1);
}

TEST_F(ControlFlowOpsTest, ThePredicateMustBeAScalar) {
  const Output vector = Placeholder(s.root, DType::kBool);
  const Output y = Switch(s.root, x, vector).output_true;
  EXPECT_THAT(s.Run({y}, {}, {{vector.name(), Tensor::Vector<bool>({true, false})}}),
              IsError(StatusCode::kInvalidArgument, "The second input must be a scalar"));
}

}  // namespace
}  // namespace tenon::testing
