// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/plan.h"

#include <gtest/gtest.h>

#include <map>

#include "core/base/sanitizers.h"
#include "ops/register.h"
#include "runtime/compile/compiler.h"
#include "runtime/execute/executor.h"
#include "runtime/execute/local_rendezvous.h"
#include "tests/testing/cpu_devices.h"
#include "tests/testing/cpu_time.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

class PlanTest : public ::testing::Test {
 protected:
  Node* Add(const std::string& name, std::string_view op, AttributeMap attrs,
            const std::vector<Endpoint>& inputs = {}) {
    const auto node = graph_.AddNode(name, op, std::move(attrs), inputs);
    EXPECT_OK(node);
    return *node;
  }
  Node* Number(const std::string& name, float value) {
    return Add(name, "Const", {{"dtype", DType::kFloat}, {"value", Tensor::Scalar(value)}});
  }
  /// Runs the graph's plan, whose retval 0 is the result.
  StatusOr<Tensor> Run() {
    TENON_ASSIGN_OR_RETURN(auto plan,
                           ExecutionPlan::Create(graph_, *devices_[0], kernels_.On(*devices_[0])));
    Executor executor(std::move(plan), nullptr);
    Cancellation cancellation;
    LocalRendezvous rendezvous;
    ResourceStore resources;
    std::vector<Tensor> retvals(1);
    const ProgramRun run{
        .cancellation = &cancellation, .rendezvous = &rendezvous, .resources = &resources};
    TENON_RETURN_IF_ERROR(executor.Run({run, *devices_[0]}, {}, &retvals));
    return retvals.at(0);
  }

  Graph graph_{AllOps()};
  std::vector<std::unique_ptr<Device>> devices_ =
      testing::MakeCpuDevices("/job:localhost/replica:0/task:0", 1, "localhost");
  KernelCache kernels_;
};

TEST_F(PlanTest, ANodeMayHaveManyInputs) {
  Node* const one = Number("one", 1);
  const int64_t n = 70000;
  Node* const sum = Add("sum", "AddN", {{"T", DType::kFloat}, {"N", n}},
                        std::vector<Endpoint>(n, Endpoint{one, 0}));
  Add("result", "_Retval", {{"T", DType::kFloat}, {"index", int64_t{0}}}, {{sum, 0}});
  const auto result = Run();
  ASSERT_OK(result);
  EXPECT_EQ(result->scalar<float>(), 70000);
}

TEST_F(PlanTest, ANodeMayHaveManyOutputs) {
  const testing::CpuTime time;
  const int64_t n = 60000;
  std::vector<float> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>(i);
  Node* const all =
      Add("all", "Const", {{"dtype", DType::kFloat}, {"value", Tensor::Vector(values)}});
  Node* const parts = Add("parts", "Unpack", {{"T", DType::kFloat}, {"num", n}}, {{all, 0}});
  std::vector<Endpoint> outputs;
  for (int i = 0; i < n; ++i) outputs.push_back({parts, i});
  Node* const sum = Add("sum", "AddN", {{"T", DType::kFloat}, {"N", n}}, outputs);
  for (int i = 0; i < n; ++i) {
    Add(StrCat("also", i), "Identity", {{"T", DType::kFloat}}, {{parts, i}});
  }
  Add("result", "_Retval", {{"T", DType::kFloat}, {"index", int64_t{0}}}, {{sum, 0}});
  const auto result = Run();
  ASSERT_OK(result);
  EXPECT_NEAR(result->scalar<float>(), 0.5 * n * (n - 1), 1e5);
  EXPECT_LT(time.seconds(), testing::kLinearSeconds);
}

TEST_F(PlanTest, AsManyIterationsRunAtOnceAsMemoryHolds) {
  const auto loop = [&](const std::string& name, Node* from, int64_t inputs) {
    Node* const enter =
        Add(name, "Enter",
            {{"T", DType::kFloat}, {"frame_name", name}, {"parallel_iterations", int64_t{1000}}},
            {{from, 0}});
    return Add(name + "_sum", "AddN", {{"T", DType::kFloat}, {"N", inputs}},
               std::vector<Endpoint>(inputs, Endpoint{enter, 0}));
  };
  Node* const one = Number("one", 1);
  loop("small", one, 2);
  loop("large", one, 1000000);
  loop("innermost", loop("inner", loop("outer", one, 2), 2), 2);
  const auto plan = ExecutionPlan::Create(graph_, *devices_[0], kernels_.On(*devices_[0]));
  ASSERT_OK(plan);
  std::map<std::string, int64_t> iterations;
  for (const auto& f : (*plan)->frames()) iterations[f.info.name] = f.info.parallel_iterations;
  EXPECT_EQ(iterations["small"], 1000);
  EXPECT_LT(iterations["large"], 20);
  EXPECT_GE(iterations["large"], 1);
  EXPECT_EQ(iterations["outer"], 1000);
  EXPECT_LT(iterations["outer"] * iterations["inner"] * iterations["innermost"], 1000000);
}

TEST_F(PlanTest, LoopsShareTheMemoryOfIterations) {
  Node* const one = Number("one", 1);
  constexpr int64_t kLoops = 100, kInputs = 2000, kWished = 1000;
  const auto loop = [&](const std::string& name, int64_t inputs) {
    Node* const enter = Add(
        name, "Enter",
        {{"T", DType::kFloat}, {"frame_name", name}, {"parallel_iterations", kWished}}, {{one, 0}});
    Add(name + "_sum", "AddN", {{"T", DType::kFloat}, {"N", inputs}},
        std::vector<Endpoint>(inputs, Endpoint{enter, 0}));
  };
  for (int i = 0; i < kLoops; ++i) loop(StrCat("large", i), kInputs);
  loop("small", 2);
  const auto plan = ExecutionPlan::Create(graph_, *devices_[0], kernels_.On(*devices_[0]));
  ASSERT_OK(plan);
  int64_t slots = 0;
  for (const auto& f : (*plan)->frames()) {
    slots += f.info.parallel_iterations * int64_t{f.num_slots};
    if (f.info.name == "small") EXPECT_EQ(f.info.parallel_iterations, kWished);
  }
  EXPECT_LT(slots * sizeof(Value), 256 << 20);
  EXPECT_GT(slots * sizeof(Value), 200 << 20);
}

TEST_F(PlanTest, AConstantThatWaitsIsPlacedWithItsConsumer) {
  Node* const flag =
      Add("flag", "Const", {{"dtype", DType::kBool}, {"value", Tensor::Scalar(true)}});
  Node* const x = Number("x", 1);
  Node* const branches = Add("switch", "Switch", {{"T", DType::kFloat}}, {{x, 0}, {flag, 0}});
  std::vector<Endpoint> sums;
  for (const int taken : {0, 1}) {
    Node* const pivot =
        Add(StrCat("pivot", taken), "Identity", {{"T", DType::kFloat}}, {{branches, taken}});
    Node* const two = Number(StrCat("two", taken), static_cast<float>(2 + taken));
    graph_.AddControlEdge(pivot, two);
    sums.push_back(
        {Add(StrCat("sum", taken), "Mul", {{"T", DType::kFloat}}, {{two, 0}, {two, 0}}), 0});
  }
  Node* const merge = Add("merge", "Merge", {{"T", DType::kFloat}, {"N", int64_t{2}}}, sums);
  Add("result", "_Retval", {{"T", DType::kFloat}, {"index", int64_t{0}}}, {{merge, 0}});
  const auto plan = ExecutionPlan::Create(graph_, *devices_[0], kernels_.On(*devices_[0]));
  ASSERT_OK(plan);
  // Both inputs of both products, and what the Switch takes is brought: its flow is not plain.
  EXPECT_EQ((*plan)->frames()[0].constants.size(), 4);
  for (size_t i = 0; i < (*plan)->nodes().size(); ++i) {
    const PlanNode& item = (*plan)->nodes()[i];
    if ((*plan)->op(i) == "Mul") EXPECT_EQ(item.pending, 1);
    if ((*plan)->name(i) == "two0") EXPECT_EQ(item.edges_begin, item.edges_end);
  }
  const auto result = Run();
  ASSERT_OK(result);
  EXPECT_EQ(result->scalar<float>(), 9);
}

TEST_F(PlanTest, LoopsMayBeNestedDeeply) {
  Node* value = Number("one", 1);
  constexpr int kDepth = kSanitized ? 20000 : 200000;
  for (int i = 0; i < kDepth; ++i) {
    value = Add(StrCat("enter", i), "Enter",
                {{"T", DType::kFloat}, {"frame_name", StrCat("frame", i)}}, {{value, 0}});
  }
  for (int i = 0; i < kDepth; ++i) {
    value = Add(StrCat("exit", i), "Exit", {{"T", DType::kFloat}}, {{value, 0}});
  }
  Add("result", "_Retval", {{"T", DType::kFloat}, {"index", int64_t{0}}}, {{value, 0}});
  const auto result = Run();
  ASSERT_OK(result);
  EXPECT_EQ(result->scalar<float>(), 1);
}

TEST_F(PlanTest, ManyLoopsArePlannedInTimeThatIsLinear) {
  const testing::CpuTime time;
  Node* const one = Number("one", 1);
  for (int i = 0; i < (kSanitized ? 6000 : 60000); ++i) {
    Node* const enter = Add(StrCat("enter", i), "Enter",
                            {{"T", DType::kFloat}, {"frame_name", StrCat("frame", i)}}, {{one, 0}});
    Add(StrCat("exit", i), "Exit", {{"T", DType::kFloat}}, {{enter, 0}});
  }
  EXPECT_OK(ExecutionPlan::Create(graph_, *devices_[0], kernels_.On(*devices_[0])));
  EXPECT_LT(time.seconds(), testing::kLinearSeconds);
}

TEST_F(PlanTest, AResultIsGivenOnce) {
  const auto refuse = [&](std::string_view text) {
    const auto plan = ExecutionPlan::Create(graph_, *devices_[0], kernels_.On(*devices_[0]));
    EXPECT_THAT(plan, testing::IsError(StatusCode::kInvalidArgument, text));
  };
  const AttributeMap first({{"T", DType::kFloat}, {"index", int64_t{0}}});
  Node* const one = Number("one", 1);
  Add("a", "_Retval", first, {{one, 0}});
  Node* const other = Add("b", "_Retval", first, {{one, 0}});
  refuse("node 'b' (_Retval): there is another one of index 0");
  for (Node* node : graph_.nodes()) node->set_assigned_device(devices_[0]->name());
  const Compiler compiler({.devices = {devices_[0].get()}}, {});
  EXPECT_THAT(compiler.Build(graph_.Clone(), kernels_),
              testing::IsError(StatusCode::kInvalidArgument,
                               "nodes 'a' and 'b' (_Retval) both give result 0"));
  // The iterations of a loop run at once.
  graph_.RemoveNode(other);
  Node* const enter =
      Add("enter", "Enter", {{"T", DType::kFloat}, {"frame_name", "loop"}}, {{one, 0}});
  Add("c", "_Retval", {{"T", DType::kFloat}, {"index", int64_t{1}}}, {{enter, 0}});
  refuse("Retval[1] does not have value: 'c' is within a while loop");
}

TEST_F(PlanTest, AnArgumentHasOneType) {
  Add("a", "_Arg", {{"T", DType::kFloat}, {"index", int64_t{0}}});
  Add("b", "_Arg", {{"T", DType::kFloat}, {"index", int64_t{0}}});
  const auto create = [&] {
    return ExecutionPlan::Create(graph_, *devices_[0], kernels_.On(*devices_[0])).status();
  };
  EXPECT_OK(create());
  Add("c", "_Arg", {{"T", DType::kString}, {"index", int64_t{0}}});
  EXPECT_THAT(create(), testing::IsError(StatusCode::kInvalidArgument,
                                         "node 'c' (_Arg): argument 0 is string, and float"));
}

}  // namespace
}  // namespace tenon
