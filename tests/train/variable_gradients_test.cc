// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <set>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/nn/nn_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"
#include "train/optimizers/gradient_descent.h"
#include "train/variables.h"

// The update of a ref variable and the gradients that read the variable.

namespace tenon::testing {
namespace {

/// Whether `node` runs after `before` in any case.
bool RunsAfter(const Node& node, const Node& before) {
  std::vector<const Node*> stack = {&node};
  std::set<const Node*> seen;
  while (!stack.empty()) {
    const Node* const next = stack.back();
    stack.pop_back();
    if (next == &before) return true;
    if (!seen.insert(next).second) continue;
    for (const Endpoint& in : next->inputs()) stack.push_back(in.node);
    stack.insert(stack.end(), next->control_inputs().begin(), next->control_inputs().end());
  }
  return false;
}

class VariableGradientsTest : public ::testing::Test {
 protected:
  /// Two products, whose gradients are taken; `parameters` is where the variables are.
  void Build(const std::string& parameters, const std::string& work, bool resource = false) {
    {
      const DeviceScope scope(parameters);
      const VariableOptions options = {.resource = resource};
      first_ = Variable("first", Const(Tensor::Zeros(DType::kFloat, {3, 4})), options);
      second_ = Variable("second", Const(Tensor::Zeros(DType::kFloat, {4, 2})), options);
    }
    const DeviceScope scope(work);
    const Output x = Const(Tensor::Zeros(DType::kFloat, {5, 3}));
    const Output loss = Sum(MatMul(Relu(MatMul(x, first_)), second_), {0, 1});
    gradients_ = Gradients(loss, {first_, second_});
    ASSERT_OK(s_.graph.error());
  }

  /// The product that reads the second variable on the way back.
  const Node& BackThroughSecond() {
    for (const Node* n : s_.graph.nodes()) {
      const bool back = n->name().starts_with("gradients/") && n->op() == "MatMul" &&
                        n->attrs().GetOr("transpose_b", false);
      if (back) return *n;
    }
    ADD_FAILURE() << "no product has the second variable transposed";
    return *s_.graph.nodes()[0];
  }

  GraphSession s_;
  Variable first_, second_;
  std::vector<Output> gradients_;
};

TEST_F(VariableGradientsTest, AGradientWaitsForTheOthersThatReadItsVariable) {
  Build("", "");
  EXPECT_TRUE(RunsAfter(*gradients_[1].node, BackThroughSecond()));
}

TEST_F(VariableGradientsTest, ItWaitsForNothingWhereTheVariableIsOnAnotherTask) {
  Build("/job:ps/task:0", "/job:worker/task:0");
  EXPECT_FALSE(RunsAfter(*gradients_[1].node, BackThroughSecond()));
}

TEST_F(VariableGradientsTest, ItWaitsForNothingWhereAReadIsOfOneMoment) {
  Build("", "", /*resource=*/true);
  EXPECT_FALSE(RunsAfter(*gradients_[1].node, BackThroughSecond()));
}

}  // namespace
}  // namespace tenon::testing
