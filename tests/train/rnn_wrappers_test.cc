// SPDX-License-Identifier: Apache-2.0
// Cells around other cells; values of networks beside TensorFlow's are in
// tests/interop/layers_test.py.
#include <gmock/gmock.h>

#include <algorithm>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "tests/testing/status_matchers.h"
#include "tests/train/finite_differences.h"
#include "train/layers/rnn.h"
#include "train/layers/salted_seed.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RnnWrappersTest, AResidualCellAddsItsInput) {
  GraphSession s;
  const BasicRnnCell cell(3);
  const Output x = Waves({2, 3});
  const std::vector<Output> state{Waves({2, 3}, 0.7)};
  const RnnStep plain = cell(x, state), residual = ResidualWrapper(cell)(x, state);
  const RnnStep twice =
      ResidualWrapper(cell, [](const Output&, const Output& y) { return 2 * y; })(x, state);
  ASSERT_EQ(s.graph.variables().size(), 2);
  EXPECT_EQ(s.graph.variables()[0].ref->name(), "basic_rnn_cell/kernel");
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  EXPECT_EQ(Numbers(s.Value(residual.output)), Numbers(s.Value(x + plain.output)));
  EXPECT_EQ(Numbers(s.Value(residual.state[0])), Numbers(s.Value(plain.output)));
  EXPECT_EQ(Numbers(s.Value(twice.output)), Numbers(s.Value(2 * plain.output)));
  ResidualWrapper(BasicRnnCell(4))(x, {Waves({2, 4})});
  EXPECT_THAT(s.graph.error().message(),
              HasSubstr("a residual cell adds its input, of shape [2,3], to its output, of "
                        "another: [2,4]"));
}

TEST(RnnWrappersTest, ACellOnADeviceHasItsVariablesAndNodesThere) {
  GraphSession s;
  const DeviceScope task("/job:worker");
  const MultiRnnCell cells({GruCell(2), DeviceWrapper(LstmCell(2), "/device:CPU:1")});
  DynamicRnn(cells, Waves({2, 3, 2}));
  ASSERT_OK(s.graph.error());
  int there = 0;
  for (const Node* node : s.graph.nodes()) {
    const bool is_of_lstm = node->name().find("lstm_cell") != std::string::npos;
    const bool on_cpu_1 = node->requested_device() == "/job:worker/device:CPU:1";
    if (node->op() == "VariableV2" || node->op() == "MatMul") {
      EXPECT_EQ(on_cpu_1, is_of_lstm) << node->name();
    }
    there += on_cpu_1 ? 1 : 0;
  }
  EXPECT_GT(there, 10);
}

TEST(RnnWrappersTest, VariationalDropoutIsTheSameInEachStepOfTheSequence) {
  GraphSession s;
  SetRandomSeed(6);
  const Output training = Placeholder(DType::kBool, Shape(), {.name = "training"});
  const RnnCell cell = DropoutWrapper(
      BasicRnnCell(40, {.kernel_initializer = OnesInitializer()}),
      {.output_keep_prob = 0.5, .variational_recurrent = true, .training = training, .seed = 2});
  const RnnResult r = DynamicRnn(cell, Ones({3, 4, 1}));
  const Output gradient = Gradients(Sum(r.outputs), {Output(s.graph.variables()[0].value)})[0];
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  const auto zeros = [&](bool on) {
    const auto values = s.Run({r.outputs, gradient}, {}, {{"training", Tensor::Scalar(on)}});
    EXPECT_OK(values.status());
    std::vector<int> found;
    if (!values.ok()) return found;
    const std::vector<double> y = Numbers((*values)[0]);
    for (int unit = 0; unit < 40; ++unit) {
      int count = 0;
      for (int i = 0; i < 12; ++i) count += y[40 * i + unit] == 0 ? 1 : 0;
      EXPECT_TRUE(count == 0 || count == 12) << "unit " << unit << " is dropped " << count;
      if (count > 0) found.push_back(unit);
    }
    return found;
  };
  EXPECT_THAT(zeros(false), ElementsAre());
  const std::vector<int> first = zeros(true), second = zeros(true);
  EXPECT_GT(first.size(), 8);
  EXPECT_LT(first.size(), 32);
  EXPECT_NE(first, second);
}

TEST(RnnWrappersTest, WhatIsDroppedOfInputOutputAndStatesDiffers) {
  GraphSession s;
  SetRandomSeed(6);
  const RnnCell cell = DropoutWrapper(BasicRnnCell(60, {.kernel_initializer = OnesInitializer()}),
                                      {.output_keep_prob = 0.5, .state_keep_prob = 0.5, .seed = 2});
  const RnnStep step = cell(Ones({1, 60}), cell.ZeroState(1, DType::kFloat));
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  const auto values = s.Run({step.output, step.state[0]});
  ASSERT_OK(values.status());
  EXPECT_NE(Numbers((*values)[0]), Numbers((*values)[1]));
}

TEST(RnnWrappersTest, GradientsOfWrappedCellsAreDifferences) {
  GraphSession s;
  SetRandomSeed(4);
  const RnnResult r =
      DynamicRnn(MultiRnnCell({ResidualWrapper(GruCell(2)), ResidualWrapper(LstmCell(2))}),
                 Waves({2, 3, 2}), {.sequence_length = Const({3, 2})});
  ExpectGradientsOfVariables(s, Sum(Square(r.outputs)));
}

TEST(RnnWrappersTest, ProbabilitiesAreAbove0) {
  for (const double wrong : {0.0, 1.5, -1.0}) {
    GraphSession s;
    const RnnCell cell = DropoutWrapper(GruCell(2), {.state_keep_prob = wrong});
    cell(Waves({2, 3}), cell.ZeroState(2, DType::kDouble));
    EXPECT_THAT(s.graph.error().message(),
                HasSubstr(StrCat("keeps an element must be in (0, 1], found ", wrong)));
  }
  GraphSession s;
  const RnnCell cell = DropoutWrapper(GruCell(2), {.input_keep_prob = Ones({2})});
  cell(Waves({2, 3}), cell.ZeroState(2, DType::kDouble));
  EXPECT_THAT(s.graph.error().message(),
              HasSubstr("the rate of a dropout must be a number or a scalar, found [2]"));
}

TEST(RnnWrappersTest, SeedsAreTensorFlows) {
  EXPECT_EQ(SaltedSeed(3, "input_0"), 371649270);
  EXPECT_EQ(SaltedSeed(-7, "state_1"), 1627879336);
  EXPECT_EQ(SaltedSeed(123456789012345678, "output_0"), 2067056466);
  EXPECT_EQ(SaltedSeed(0, "input_0"), 0);
}

}  // namespace
}  // namespace tenon::testing
