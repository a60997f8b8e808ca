// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/array_ops.h"
#include "core/sanitizers.h"
#include "ops/math_ops.h"
#include "runtime/cpu_device.h"
#include "runtime/passes/pass.h"
#include "tests/testing/cpu_time.h"
#include "tests/testing/registry.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::AllOps;

class PassesTest : public ::testing::Test {
 protected:
  /// The graph of `root` after all passes.
  Graph Optimised(const Scope& root) {
    EXPECT_OK(root.status());
    Graph graph = root.graph().Clone();
    EXPECT_OK(RunPasses(&graph, {devices_[0].get()}, {}));
    return graph;
  }
  void TearDown() override { EXPECT_LT(time_.seconds(), testing::kLinearSeconds); }

  const testing::CpuTime time_;
  std::vector<std::unique_ptr<Device>> devices_ =
      MakeCpuDevices("/job:localhost/replica:0/task:0", 1, "localhost");
};

TEST_F(PassesTest, NothingWaitsForWhatIsFoldedOrMerged) {
  const Scope root = Scope::Root(AllOps());
  const Output one = Const(root, 1.0f), x = Placeholder(root.WithName("x"), DType::kFloat);
  const Output folded = Neg(root.WithName("folded"), one);
  Neg(root.WithName("after").WithControlDependencies({folded}), one);
  const Output a = Neg(root.WithName("a"), x), b = Neg(root.WithName("b"), x);
  Exp(root.WithName("after_a").WithControlDependencies({a}), x);
  Exp(root.WithName("after_b").WithControlDependencies({b}), x);
  const Graph graph = Optimised(root);
  EXPECT_EQ(graph.Find("after"), nullptr);
  ASSERT_NE(graph.Find("after_a"), nullptr);
  EXPECT_EQ(graph.Find("after_a")->control_inputs().size(), 1u);
  EXPECT_EQ(graph.Find("after_b"), nullptr);
}

TEST_F(PassesTest, HugeResultsAreNotComputed) {
  const Scope root = Scope::Root(AllOps());
  const Output ones =
      Fill(root.WithName("fill"), Const(root, {1 << 15, 1 << 15}), Const(root, 1.0f));
  Sum(root.WithName("sum"), ones, Const(root, {0, 1}));
  const int64_t before = CpuAllocator().bytes_in_use();
  const Graph graph = Optimised(root);
  EXPECT_NE(graph.Find("fill"), nullptr);
  EXPECT_LT(CpuAllocator().bytes_in_use() - before, 100 << 20);
}

TEST_F(PassesTest, AllFoldedResultsTogetherAreBounded) {
  const Scope root = Scope::Root(AllOps());
  for (int i = 0; i < (kSanitized ? 200 : 2000); ++i) {
    Fill(root, Const(root, {2 << 20}), Const(root, static_cast<float>(i)));
  }
  const int64_t before = CpuAllocator().bytes_in_use();
  const Graph graph = Optimised(root);
  EXPECT_LT(CpuAllocator().bytes_in_use() - before, 400 << 20);
}

TEST_F(PassesTest, TextThatDoublesWithEachNodeIsNotComputed) {
  const Scope root = Scope::Root(AllOps());
  Output text = Const(root, "0123456789abcdef");
  for (int i = 0; i < 40; ++i) {
    text = root.Op("StringJoin").Input(std::vector<Output>{text, text}).Output();
  }
  const Graph graph = Optimised(root);
  EXPECT_NE(graph.Find(text.node->name()), nullptr);
}

TEST_F(PassesTest, ManyConsumersOfOneValueAreFoldedInTimeThatIsLinear) {
  const Scope root = Scope::Root(AllOps());
  const Output one = Const(root, 1.0f), x = Placeholder(root.WithName("x"), DType::kFloat);
  const Output two = Add(root.WithName("two"), one, one);
  constexpr int kConsumers = kSanitized ? 10000 : 100000;
  for (int i = 0; i < kConsumers; ++i) {
    Neg(root, one);                // folded, each
    if (i % 2 == 0) Neg(root, x);  // all the same
    Mul(root, two, x);             // of a value that is folded; all the same
  }
  const Graph graph = Optimised(root);
  EXPECT_EQ(graph.Find("two"), nullptr);
  EXPECT_LT(graph.num_nodes(), kConsumers * 11 / 10);
}

TEST_F(PassesTest, ManyValuesThatLookAlikeAreComparedInTimeThatIsLinear) {
  const Scope root = Scope::Root(AllOps());
  for (int i = 0; i < (kSanitized ? 10000 : 100000); ++i) {
    Tensor value = Tensor::Zeros(DType::kInt32, {100});
    value.data<int32_t>()[99] = i;
    Const(root, value);
  }
  Optimised(root);
}

}  // namespace
}  // namespace tenon
