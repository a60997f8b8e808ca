// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "core/base/sanitizers.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/audio/audio_ops.h"
#include "ops/io/io_ops.h"
#include "ops/math/math_ops.h"
#include "ops/nn/nn_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "ops/strings/strings_ops.h"
#include "runtime/passes/pass.h"
#include "runtime/session/local_session.h"
#include "tests/testing/cpu_devices.h"
#include "tests/testing/cpu_time.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

class PassesTest : public ::testing::Test {
 protected:
  /// `graph` after all passes.
  Graph Optimised(const Graph& graph) {
    EXPECT_OK(graph.error());
    Graph optimised = graph.Clone();
    EXPECT_OK(RunPasses(PassStage::kStep, &optimised, {devices_[0].get()}, {}));
    return optimised;
  }
  void TearDown() override { EXPECT_LT(time_.seconds(), testing::kLinearSeconds); }

  const testing::CpuTime time_;
  std::vector<std::unique_ptr<Device>> devices_ =
      testing::MakeCpuDevices("/job:localhost/replica:0/task:0", 1, "localhost");
};

TEST_F(PassesTest, NothingWaitsForWhatIsFoldedOrMerged) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output one = Const(1.0f), x = Placeholder(DType::kFloat, {}, {.name = "x"});
  const Output folded = Neg(one, {.name = "folded"});
  {
    const ControlDependencies after({folded});
    Neg(one, {.name = "after"});
  }
  const Output a = Neg(x, {.name = "a"}), b = Neg(x, {.name = "b"});
  {
    const ControlDependencies after({a});
    Exp(x, {.name = "after_a"});
  }
  {
    const ControlDependencies after({b});
    Exp(x, {.name = "after_b"});
  }
  const Graph optimised = Optimised(graph);
  EXPECT_EQ(optimised.Find("after"), nullptr);
  ASSERT_NE(optimised.Find("after_a"), nullptr);
  EXPECT_EQ(optimised.Find("after_a")->control_inputs().size(), 1u);
  EXPECT_EQ(optimised.Find("after_b"), nullptr);
}

/// The sign of a zero is seen by whoever divides by it.
TEST_F(PassesTest, ZeroesOfTwoSignsAreTwoAttributes) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output x = Placeholder(DType::kFloat, {2}, {.name = "x"});
  LeakyRelu(x, {.alpha = 0.0f, .name = "a"});
  LeakyRelu(x, {.alpha = -0.0f, .name = "b"});
  LeakyRelu(x, {.alpha = 0.0f, .name = "c"});
  const Graph optimised = Optimised(graph);
  EXPECT_NE(optimised.Find("a"), nullptr);
  EXPECT_NE(optimised.Find("b"), nullptr);
  EXPECT_EQ(optimised.Find("c"), nullptr);
}

TEST_F(PassesTest, WhatIsReadOutsideOfTheGraphIsNeitherComputedBeforehandNorMerged) {
  const std::string path = StrCat(::testing::TempDir(), "passes_test_words");
  const auto write = [&](std::string_view words) { std::ofstream(path) << words; };
  write("a\nb\n");
  testing::GraphSession s;
  const Output file = Const(path);
  std::vector<Output> outputs;
  for (int i = 0; i < 2; ++i) {
    outputs.push_back(GenerateVocabRemapping(file, file, 0, 2).remapping);
    outputs.push_back(MatchingFiles(file));
    outputs.push_back(ReadFile(file));
  }
  const Graph optimised = Optimised(s.graph);
  for (const Output& o : outputs)
    EXPECT_NE(optimised.Find(o.node->name()), nullptr) << o.node->name();
  EXPECT_THAT(testing::Numbers(s.Value(outputs[0])), ::testing::ElementsAre(0, 1));
  write("a\n");
  EXPECT_THAT(s.Run({outputs[0]}).status(),
              testing::IsError(StatusCode::kInvalidArgument, "has 1 lines"));
  std::filesystem::remove(path);
}

TEST_F(PassesTest, HugeResultsAreNotComputed) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output ones = Fill({1 << 15, 1 << 15}, 1.0f, {.name = "fill"});
  Sum(ones, {0, 1}, {.name = "sum"});
  const int64_t before = CpuAllocator().bytes_in_use();
  const Graph optimised = Optimised(graph);
  EXPECT_NE(optimised.Find("fill"), nullptr);
  EXPECT_LT(CpuAllocator().bytes_in_use() - before, 100 << 20);
}

TEST_F(PassesTest, AllFoldedResultsTogetherAreBounded) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  for (int i = 0; i < (kSanitized ? 200 : 2000); ++i) {
    Fill({2 << 20}, static_cast<float>(i));
  }
  const int64_t before = CpuAllocator().bytes_in_use();
  const Graph optimised = Optimised(graph);
  EXPECT_LT(CpuAllocator().bytes_in_use() - before, 400 << 20);
}

TEST_F(PassesTest, WhatTakesLongIsLeftToTheSteps) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  Neg(Const(1.0f), {.name = "quick"});
  const Output spectra = Const(Tensor::Zeros(DType::kFloat, {1, 2000, 2}));
  // Eight thousand million products for eight megabytes.
  Mfcc(spectra, Const(16000),
       {.filterbank_channel_count = 4000, .dct_coefficient_count = 1000, .name = "slow"});
  const Graph optimised = Optimised(graph);
  EXPECT_EQ(optimised.Find("quick"), nullptr);
  EXPECT_NE(optimised.Find("slow"), nullptr);
}

TEST_F(PassesTest, TextThatDoublesWithEachNodeIsNotComputed) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  Output text = Const("0123456789abcdef");
  for (int i = 0; i < 40; ++i) text = StringJoin({text, text});
  const Graph optimised = Optimised(graph);
  EXPECT_NE(optimised.Find(text.node->name()), nullptr);
}

TEST_F(PassesTest, ManyConsumersOfOneValueAreFoldedInTimeThatIsLinear) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output one = Const(1.0f), x = Placeholder(DType::kFloat, {}, {.name = "x"});
  const Output two = Add(one, one, {.name = "two"});
  constexpr int kConsumers = kSanitized ? 10000 : 100000;
  for (int i = 0; i < kConsumers; ++i) {
    Neg(one);                // folded, each
    if (i % 2 == 0) Neg(x);  // all the same
    Mul(two, x);             // of a value that is folded; all the same
  }
  const Graph optimised = Optimised(graph);
  EXPECT_EQ(optimised.Find("two"), nullptr);
  EXPECT_LT(optimised.num_nodes(), kConsumers * 11 / 10);
}

TEST_F(PassesTest, ProductsWithOneAreLeftOut) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output x = Placeholder(DType::kFloat, PartialShape{2, 3}, {.name = "x"});
  const Output n = Placeholder(DType::kInt32, {}, {.name = "n"});
  const auto keep = [](const Output& y) { Neg(y, {.name = StrCat("of_", y.node->name())}); };
  keep(Mul(x, 1.0f, {.name = "product"}));
  keep(Mul(1.0f, x, {.name = "reversed"}));
  keep(Mul(n, 1, {.name = "of_integers"}));
  keep(Div(x, 1.0f, {.name = "quotient"}));
  keep(Mul(x, 2.0f, {.name = "doubled"}));
  keep(Div(1.0f, x, {.name = "inverse"}));
  // A scalar may be fed where a matrix is expected, and then becomes one.
  keep(Mul(x, Const(Tensor::Of<float>({1, 1}, {1.0f})), {.name = "of_a_matrix"}));
  const Graph optimised = Optimised(graph);
  for (const char* gone : {"product", "reversed", "of_integers", "quotient"}) {
    EXPECT_EQ(optimised.Find(gone), nullptr) << gone;
  }
  for (const char* left : {"doubled", "inverse", "of_a_matrix"}) {
    EXPECT_NE(optimised.Find(left), nullptr) << left;
  }
}

TEST_F(PassesTest, ProductsThatMayBeDeadOrWaitOrReadAVariableLaterStay) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  const auto keep = [](const Output& y) { Neg(y, {.name = StrCat("of_", y.node->name())}); };
  Output one;
  {
    const ControlDependencies after({x});
    one = Const(1.0f, {.name = "one"});
    keep(Mul(Exp(x), 1.0f, {.name = "waiting"}));
  }
  keep(Mul(x, one, {.name = "of_a_constant_that_waits"}));
  const Output awaited = Mul(Exp(x), 1.0f, {.name = "awaited"});
  {
    const ControlDependencies after({awaited});
    Log(x, {.name = "after"});
  }
  const Output v = VariableV2({}, DType::kFloat);
  keep(Mul(v, 1.0f, {.name = "of_a_variable"}));
  keep(Mul(Identity(v), 1.0f, {.name = "of_its_value"}));
  const Graph optimised = Optimised(graph);
  for (const char* left :
       {"waiting", "of_a_constant_that_waits", "awaited", "of_a_variable", "of_its_value"}) {
    EXPECT_NE(optimised.Find(left), nullptr) << left;
  }
}

TEST_F(PassesTest, ProductsOfAChainAreLeftOutInTimeThatIsLinear) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  for (int i = 0; i < (kSanitized ? 5000 : 50000); ++i) x = Identity(Mul(x, 1.0f));
  Neg(x, {.name = "end"});
  const Graph optimised = Optimised(graph);
  EXPECT_LE(optimised.num_nodes(), (kSanitized ? 5000 : 50000) + 2);
}

/// A graph of max pooling and its gradient; that of `grad_ksize`, where it is given.
struct PooledGraph {
  explicit PooledGraph(std::vector<int64_t> ksize, std::vector<int64_t> grad_ksize = {})
      : graph(AllOps()) {
    const GraphBuilding building(graph);
    x = Placeholder(DType::kFloat, PartialShape{2, 20, 20, 3}, {.name = "x"});
    dy = Placeholder(DType::kFloat, {}, {.name = "dy"});
    const std::vector<int64_t> strides = {1, 2, 2, 1};
    pooled = MaxPool(x, ksize, strides, "SAME", {.name = "pool"});
    const Output grad = MaxPoolGrad(x, pooled, dy, grad_ksize.empty() ? ksize : grad_ksize, strides,
                                    "SAME", {.name = "grad"});
    dx = Identity(grad, {.name = "dx"});
  }

  /// The ops that pooling and its gradient have become on a device.
  std::vector<std::string> OpsOn(Device* device) const {
    EXPECT_OK(graph.error());
    Graph part = graph.Clone();
    EXPECT_OK(RunPasses(PassStage::kDevice, &part, {device}, {}));
    return {part.Find("pool")->op(), part.Find("grad")->op()};
  }

  Graph graph;
  Output x, dy, pooled, dx;
};

TEST_F(PassesTest, MaxPoolingTellsItsGradientThePlaces) {
  const auto ops = [&](const PooledGraph& g) { return g.OpsOn(devices_[0].get()); };
  const std::vector<std::string> kept = {"_MaxPoolWithPlaces", "_MaxPoolGradOfPlaces"};
  const std::vector<std::string> as_before = {"MaxPool", "MaxPoolGrad"};
  EXPECT_EQ(ops(PooledGraph({1, 3, 3, 1})), kept);
  EXPECT_EQ(ops(PooledGraph({1, 17, 17, 1})), as_before);
  EXPECT_EQ(ops(PooledGraph({1, 3, 3, 1}, {1, 3, 2, 1})), as_before);
}

TEST_F(PassesTest, PoolingsWithManyNeighboursAreReplacedInTimeThatIsLinear) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  const Output dy = Placeholder(DType::kFloat, {}, {.name = "dy"});
  const std::vector<int64_t> twos = {1, 2, 2, 1};
  const Output pooled = MaxPool(x, twos, twos, "SAME", {.name = "pool"});
  for (int i = 0; i < (kSanitized ? 3000 : 30000); ++i) {
    MaxPoolGrad(x, pooled, dy, twos, twos, "SAME");
    MaxPoolGrad(x, MaxPool(x, twos, twos, "SAME"), dy, twos, twos, "SAME");
  }
  ASSERT_OK(RunPasses(PassStage::kDevice, &graph, {devices_[0].get()}, {}));
  EXPECT_EQ(graph.Find("pool")->op(), "_MaxPoolWithPlaces");
}

TEST_F(PassesTest, AGradientMayBeThatOfAGradient) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  const std::vector<int64_t> ones = {1, 1, 1, 1};
  const Output pooled = MaxPool(x, ones, ones, "SAME", {.name = "pool"});
  const Output first = MaxPoolGrad(x, pooled, pooled, ones, ones, "SAME", {.name = "first"});
  Neg(MaxPoolGrad(x, pooled, first, ones, ones, "SAME", {.name = "second"}), {.name = "out"});
  {
    const ControlDependencies after({first});
    Exp(x, {.name = "after"});
  }
  ASSERT_OK(RunPasses(PassStage::kDevice, &graph, {devices_[0].get()}, {}));
  const Node* const second = graph.Find("out")->input(0).node;
  EXPECT_EQ(second->op(), "_MaxPoolGradOfPlaces");
  EXPECT_EQ(second->input(2).node, graph.Find("first"));
  EXPECT_EQ(graph.Find("first")->input(2).node, graph.Find("pool"));
  EXPECT_EQ(graph.Find("after")->control_inputs()[0], graph.Find("first"));
}

TEST_F(PassesTest, GradientsAreTheSameWithThePlaces) {
  const PooledGraph g({1, 3, 3, 1});
  std::vector<Tensor> results[2];
  for (const bool kept : {false, true}) {
    LocalSessionOptions options;
    if (!kept) options.passes.disabled = {"places-of-maxima"};
    const auto session = MakeLocalSession(g.graph, options);
    ASSERT_OK(session.status());
    Tensor x(DType::kFloat, {2, 20, 20, 3}), dy(DType::kFloat, {2, 10, 10, 3});
    for (int64_t i = 0; i < x.num_elements(); ++i) x.data<float>()[i] = float(i * 37 % 101);
    for (int64_t i = 0; i < dy.num_elements(); ++i) dy.data<float>()[i] = float(i % 7);
    const auto run = (*session)->Run({{g.x, x}, {g.dy, dy}}, {g.pooled, g.dx});
    ASSERT_OK(run.status());
    results[kept] = *run;
    const auto wrong = (*session)->Run({{g.x, x}, {g.dy, x}}, {g.dx});
    EXPECT_THAT(wrong.status(),
                testing::IsError(StatusCode::kInvalidArgument,
                                 kept ? "(_MaxPoolGradOfPlaces)" : "(MaxPoolGrad)"));
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(testing::Numbers(results[0][i]), testing::Numbers(results[1][i]));
  }
}

TEST_F(PassesTest, ManyValuesThatLookAlikeAreComparedInTimeThatIsLinear) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output x = Placeholder(DType::kInt32, {100}, {.name = "x"});
  for (int i = 0; i < (kSanitized ? 10000 : 100000); ++i) {
    Tensor value = Tensor::Zeros(DType::kInt32, {100});
    value.data<int32_t>()[99] = i;
    Add(x, Const(value));
  }
  EXPECT_EQ(Optimised(graph).num_nodes(), graph.num_nodes());
}

}  // namespace
}  // namespace tenon
