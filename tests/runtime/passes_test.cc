// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/sanitizers.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/audio/audio_ops.h"
#include "ops/math/math_ops.h"
#include "ops/nn/nn_ops.h"
#include "ops/register.h"
#include "ops/strings/strings_ops.h"
#include "runtime/cpu_device.h"
#include "runtime/local_session.h"
#include "runtime/passes/pass.h"
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
      MakeCpuDevices("/job:localhost/replica:0/task:0", 1, "localhost");
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

TEST_F(PassesTest, WhatAnOperandDoesNotChangeIsLeftOut) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output x = Placeholder(DType::kFloat, PartialShape{2, 3}, {.name = "x"});
  const Output any = Placeholder(DType::kFloat, {}, {.name = "any"});
  const Output ones = Const(Tensor::Of<float>({1, 1}, {1.0f}));
  const auto keep = [](const Output& y) { Neg(y, {.name = StrCat("of_", y.node->name())}); };
  keep(Mul(x, 1.0f, {.name = "product"}));
  keep(Mul(ones, x, {.name = "reversed"}));
  keep(Mul(any, 1.0f, {.name = "of_any_shape"}));
  keep(Div(x, 1.0f, {.name = "quotient"}));
  keep(Sub(x, 0.0f, {.name = "difference"}));
  keep(Mul(x, 2.0f, {.name = "doubled"}));
  keep(Mul(any, ones, {.name = "of_more_dimensions"}));
  keep(Div(1.0f, x, {.name = "inverse"}));
  keep(Sub(0.0f, x, {.name = "negative"}));
  keep(Add(x, 0.0f, {.name = "sum"}));  // of -0 it is 0
  const Graph optimised = Optimised(graph);
  for (const char* gone : {"product", "reversed", "of_any_shape", "quotient", "difference"}) {
    EXPECT_EQ(optimised.Find(gone), nullptr) << gone;
  }
  for (const char* left : {"doubled", "of_more_dimensions", "inverse", "negative", "sum"}) {
    EXPECT_NE(optimised.Find(left), nullptr) << left;
  }
}

TEST_F(PassesTest, WhatWaitsForAProductWithOneWaitsForTheOtherOperand) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"}), a = Exp(x, {.name = "a"});
  {
    const ControlDependencies after({Mul(a, 1.0f, {.name = "product"})});
    Neg(x, {.name = "after"});
  }
  {
    const ControlDependencies after({Neg(x, {.name = "before"})});
    Log(Mul(a, 1.0f, {.name = "waiting"}));
  }
  const Graph optimised = Optimised(graph);
  EXPECT_EQ(optimised.Find("product"), nullptr);
  ASSERT_EQ(optimised.Find("after")->control_inputs().size(), 1u);
  EXPECT_EQ(optimised.Find("after")->control_inputs()[0]->name(), "a");
  EXPECT_NE(optimised.Find("waiting"), nullptr);
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
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(testing::Numbers(results[0][i]), testing::Numbers(results[1][i]));
  }
}

TEST_F(PassesTest, ManyValuesThatLookAlikeAreComparedInTimeThatIsLinear) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  for (int i = 0; i < (kSanitized ? 10000 : 100000); ++i) {
    Tensor value = Tensor::Zeros(DType::kInt32, {100});
    value.data<int32_t>()[99] = i;
    Const(value);
  }
  Optimised(graph);
}

}  // namespace
}  // namespace tenon
