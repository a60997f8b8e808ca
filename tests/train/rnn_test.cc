// SPDX-License-Identifier: Apache-2.0
// Cells and recurrent networks; their values beside TensorFlow's are in
// tests/interop/layers_test.py.
#include "train/layers/rnn.h"

#include <gmock/gmock.h>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "tests/testing/status_matchers.h"
#include "tests/train/finite_differences.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Values = std::vector<Output>;

std::string RnnMistake(const GraphSession& s) { return std::string(s.graph.error().message()); }

Output EnergyOf(const RnnResult& result) {
  Output energy = Sum(Square(result.outputs) + result.outputs);
  for (const Output& state : result.state) energy = energy + Sum(Square(state) - state);
  return energy;
}

Initializer Small(int64_t seed) { return RandomUniformInitializer(-0.7, 0.7, {.seed = seed}); }

TEST(RnnTest, StaticAndDynamicNetworksAreTheSame) {
  GraphSession s;
  SetRandomSeed(1);
  const Output x = Waves({3, 4, 2});
  const Output lengths = Const({4, 0, 2});
  const LstmCell cell(3, {.initializer = Small(2)});
  const RnnResult loop = DynamicRnn(cell, x, {.sequence_length = lengths});
  const StaticRnnResult steps =
      StaticRnn(cell, Unpack(x, 4, {.axis = 1}), {.sequence_length = lengths});
  const Output together = Pack(steps.outputs, {.axis = 1});
  EXPECT_EQ(loop.outputs.shape(), (PartialShape{3, 4, 3}));
  EXPECT_EQ(s.graph.variables().size(), 2);
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  const auto values =
      s.Run({loop.outputs, together, loop.state[0], steps.state[0], loop.state[1], steps.state[1]});
  ASSERT_OK(values.status());
  for (const int i : {0, 2, 4}) EXPECT_EQ(Numbers((*values)[i]), Numbers((*values)[i + 1]));
}

TEST(RnnTest, PastItsEndASequenceGivesZerosAndKeepsItsState) {
  GraphSession s;
  const Output x = Waves({2, 5, 2});
  // The longest sequence ends before the inputs do.
  const auto [outputs, state] = DynamicRnn(BasicRnnCell(2), x, {.sequence_length = Const({1, 3})});
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  const auto values = s.Run({outputs, state[0]});
  ASSERT_OK(values.status());
  const std::vector<double> y = Numbers((*values)[0]), end = Numbers((*values)[1]);
  ASSERT_EQ(y.size(), 20);
  for (int t = 0; t < 5; ++t) {
    EXPECT_EQ(y[t * 2] != 0, t < 1);
    EXPECT_EQ(y[10 + t * 2] != 0, t < 3);
  }
  EXPECT_EQ(end, (std::vector<double>{y[0], y[1], y[14], y[15]}));
}

TEST(RnnTest, SequencesOfNoLengthGiveZeros) {
  GraphSession s;
  const auto [outputs, state] =
      DynamicRnn(GruCell(2), Waves({2, 3, 2}), {.sequence_length = Const({0, 0})});
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  EXPECT_EQ(Numbers(s.Value(outputs)), std::vector<double>(12, 0));
  EXPECT_EQ(Numbers(s.Value(state[0])), std::vector<double>(4, 0));
}

TEST(RnnTest, ACellIsOneHoweverItIsUsed) {
  GraphSession s;
  const GruCell cell(3);
  const Output x = Waves({2, 4});
  const RnnStep first = cell(x, cell.ZeroState(2, DType::kDouble));
  DynamicRnn(cell, ExpandDims(x, 1));
  EXPECT_EQ(s.graph.variables().size(), 4);
  EXPECT_EQ(s.graph.variables()[0].ref->name(), "gru_cell/gates/kernel");
  EXPECT_EQ(first.output.shape(), (PartialShape{2, 3}));
  DynamicRnn(GruCell(3), ExpandDims(x, 1), {.name = "rnn"});
  EXPECT_EQ(s.graph.variables()[4].ref->name(), "rnn_1/gru_cell/gates/kernel");
  EXPECT_OK(s.graph.error());
}

TEST(RnnTest, GradientsOfCellsInALoopAreDifferences) {
  const std::vector<std::pair<const char*, RnnCell>> cells = {
      {"basic", BasicRnnCell(2)},
      {"lstm", LstmCell(2)},
      {"lstm with peepholes",
       LstmCell(3, {.use_peepholes = true, .cell_clip = 2.5, .num_proj = 2, .proj_clip = 0.9})},
      {"gru", GruCell(2)},
      {"several", MultiRnnCell({GruCell(2), DropoutWrapper(LstmCell(2), {})})},
  };
  for (const auto& [name, cell] : cells) {
    SCOPED_TRACE(name);
    GraphSession s;
    const RnnResult r = DynamicRnn(cell, Waves({2, 3, 2}), {.sequence_length = Const({3, 2})});
    ExpectGradientsOfVariables(s, EnergyOf(r));
  }
}

TEST(RnnTest, GradientsOfANetworkInABranchAndInALoopAreDifferences) {
  GraphSession s;
  const Output x = Waves({2, 3, 2});
  const Output which = Placeholder(DType::kBool, Shape(), {.name = "which"});
  const GruCell cell(2);
  const LstmCell other(2);
  const Output branch = Cond(
      which, [&] { return DynamicRnn(cell, x).outputs; }, [&] { return x; });
  // Three layers of the same weights.
  const Output loop = tenon::WhileLoop(
      {0, branch}, [](const Values& v) { return v[0] < 3; },
      [&](const Values& v) -> Values {
        return {v[0] + 1, DynamicRnn(other, v[1]).outputs};
      })[1];
  ExpectGradientsOfVariables(s, Sum(Square(loop) + branch), {{"which", Tensor::Scalar(true)}});
}

TEST(RnnTest, GradientsReachInputsInitialStatesAndBothDirections) {
  GraphSession s;
  const Output batch = Waves({2, 4, 2});
  const Variable x("x", batch), begin("begin", Waves({2, 3})), end("end", Waves({2, 2}));
  const auto [forward, backward] =
      BidirectionalDynamicRnn(GruCell(3), BasicRnnCell(2), x,
                              {.initial_state = {begin, end}, .sequence_length = Const({2, 4})});
  ExpectGradientsOfVariables(s, EnergyOf(forward) + EnergyOf(backward));
}

TEST(RnnTest, ABackwardNetworkIsAForwardOneOverWhatIsReversed) {
  GraphSession s;
  SetRandomSeed(4);
  const Output x = Waves({4, 2, 3});
  const LstmCell cell(2);
  const auto [forward, backward] = BidirectionalDynamicRnn(cell, cell, x, {.time_major = true});
  const RnnResult again = DynamicRnn(cell, ReverseV2(x, {0}), {.time_major = true});
  const Output turned = ReverseV2(again.outputs, {0});
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  const auto values = s.Run({backward.outputs, turned, backward.state[0], again.state[0]});
  ASSERT_OK(values.status());
  EXPECT_EQ(Numbers((*values)[0]), Numbers((*values)[1]));
  EXPECT_EQ(Numbers((*values)[2]), Numbers((*values)[3]));
}

TEST(RnnTest, DropoutDrawsAnewInEachStepOfTheSequence) {
  GraphSession s;
  SetRandomSeed(6);
  const Output training = Placeholder(DType::kBool, Shape(), {.name = "training"});
  const Output x = Ones({1, 40, 1});
  const RnnCell cell = DropoutWrapper(BasicRnnCell(1, {.kernel_initializer = OnesInitializer()}),
                                      {.output_keep_prob = 0.5, .training = training, .seed = 2});
  const RnnResult r = DynamicRnn(cell, x);
  const Output loss = Sum(r.outputs);
  const Output gradient = Gradients(loss, {Output(s.graph.variables()[0].value)})[0];
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  const auto zeros = [&](bool on) {
    const auto values = s.Run({r.outputs, gradient}, {}, {{"training", Tensor::Scalar(on)}});
    EXPECT_OK(values.status());
    if (!values.ok()) return int64_t{-1};
    const std::vector<double> y = Numbers((*values)[0]);
    return static_cast<int64_t>(std::count(y.begin(), y.end(), 0));
  };
  EXPECT_EQ(zeros(false), 0);
  const int64_t dropped = zeros(true);
  EXPECT_GT(dropped, 8);
  EXPECT_LT(dropped, 32);
}

TEST(RnnTest, StatesAreDroppedButForTheMemoryOfAnLstm) {
  GraphSession s;
  SetRandomSeed(8);
  const MultiRnnCell cells({LstmCell(50), GruCell(50)});
  const RnnCell cell = DropoutWrapper(cells, {.state_keep_prob = 0.5, .seed = 3});
  EXPECT_TRUE(cell.is_memory(0));
  EXPECT_FALSE(cell.is_memory(1));
  EXPECT_FALSE(cell.is_memory(2));
  const RnnStep step = cell(Waves({2, 3}), cell.ZeroState(2, DType::kDouble));
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  const auto values = s.Run(step.state);
  ASSERT_OK(values.status());
  const auto zeros = [&](int i) {
    const std::vector<double> y = Numbers((*values)[i]);
    return std::count(y.begin(), y.end(), 0);
  };
  EXPECT_EQ(zeros(0), 0);
  EXPECT_GT(zeros(1), 20);
  EXPECT_GT(zeros(2), 20);
}

/// h' = h + x * w.
class SumBody final : public RnnCell::Body {
 public:
  const std::vector<int64_t>& state_sizes() const override { return sizes_; }
  int64_t output_size() const override { return 1; }
  void Build(int64_t depth, DType dtype) override {
    weight_ = MakeWeight("weight", {depth, 1}, dtype, {OnesInitializer()});
  }
  RnnStep Step(const Output& x, const std::vector<Output>& state) override {
    const Output h = state[0] + MatMul(x, weight_);
    return {h, {h}};
  }

 private:
  const std::vector<int64_t> sizes_{1};
  Variable weight_;
};

TEST(RnnTest, ACellOfOnesOwnIsUsedAsAnyOther) {
  GraphSession s;
  const RnnCell cell(std::make_shared<SumBody>(), "sum_cell");
  const Output x = Const({{{1.0, 2.0}, {3.0, 4.0}}}, {.dtype = DType::kDouble});
  const RnnResult r = DynamicRnn(cell, x);
  EXPECT_EQ(s.graph.variables()[0].ref->name(), "rnn/sum_cell/weight");
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  EXPECT_THAT(Numbers(s.Value(r.outputs)), ElementsAre(3, 10));
}

TEST(RnnTest, MistakesAreSaid) {
  {
    GraphSession s;
    const GruCell cell(3);
    cell(Waves({2, 4}), {});
    EXPECT_THAT(RnnMistake(s), HasSubstr("the state of a cell has 1 tensors, found 0"));
  }
  {
    GraphSession s;
    DynamicRnn(LstmCell(3), Waves({2, 4, 1}), {.initial_state = {Waves({2, 3})}});
    EXPECT_THAT(RnnMistake(s), HasSubstr("the cell has 2 tensors, initial_state 1"));
    EXPECT_THAT(RnnMistake(s), HasSubstr(StrCat("rnn_test.cc:", __LINE__ - 2)));
  }
  {
    GraphSession s;
    EXPECT_EQ(DynamicRnn(LstmCell(3), Waves({2, 4})).state.size(), 2);
    EXPECT_THAT(RnnMistake(s), HasSubstr("the input of a recurrent network must have rank 3"));
  }
  {
    GraphSession s;
    EXPECT_EQ(StaticRnn(LstmCell(3), {}).state.size(), 2);
    EXPECT_THAT(RnnMistake(s), HasSubstr("a recurrent network needs an input"));
  }
}

}  // namespace
}  // namespace tenon::testing
