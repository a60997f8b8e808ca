// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/executor.h"

#include <gtest/gtest.h>

#include <ctime>
#include <future>

#include "core/base/sanitizers.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "runtime/compile/step_graph.h"
#include "runtime/execute/local_rendezvous.h"
#include "tests/testing/cpu_devices.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

class ExecutorTest : public ::testing::Test {
 protected:
  ExecutorTest()
      : devices_(testing::MakeCpuDevices("/job:localhost/replica:0/task:0", 1, "localhost")) {}

  /// Ready to run `graph` from feed "x" to fetch "y".
  std::unique_ptr<Executor> Prepare(const Graph& graph) {
    EXPECT_OK(graph.error());
    auto step_graph = MakeStepGraph(graph, {{"x:0"}, {"y:0"}, {}});
    EXPECT_OK(step_graph);
    auto plan = ExecutionPlan::Create(*step_graph, *devices_[0], kernels_.On(*devices_[0]));
    EXPECT_OK(plan);
    return std::make_unique<Executor>(*std::move(plan), &pool_);
  }

  std::vector<std::unique_ptr<Device>> devices_;
  KernelCache kernels_;
  ThreadPool pool_{2};
};

/// The processor time of the calling thread.
double ThreadSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

TEST_F(ExecutorTest, StartingAStepLeavesToThePoolWhatTakesLong) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  Output product = x;
  for (int i = 0; i < 20; ++i) product = MatMul(product, x);
  Identity(product, {.name = "y"});
  const auto executor = Prepare(graph);

  const ProgramRun run;
  const DeviceRun on_device{run, *devices_[0]};
  const std::vector<Tensor> args = {Tensor::Zeros(DType::kFloat, {1000, 1000})};
  std::vector<Tensor> retvals(1);
  std::promise<Status> over;
  std::future<Status> result = over.get_future();
  executor->Start(on_device, args, &retvals, true, [&](Status s) { over.set_value(std::move(s)); });
  // 40 Gflop: the pool cannot have done them yet.
  EXPECT_EQ(result.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_OK(result.get());
  EXPECT_EQ(retvals[0].shape(), Shape({1000, 1000}));
}

TEST_F(ExecutorTest, AStepOfManyQuickNodesMovesToThePool) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  const Output one = Const(1.0f);
  Output sum = x;
  for (int i = 0; i < 20000; ++i) sum = Add(sum, one);
  Identity(sum, {.name = "y"});
  const auto executor = Prepare(graph);
  for (int repetition = 0; repetition < 5; ++repetition) {
    const ProgramRun run;
    const DeviceRun on_device{run, *devices_[0]};
    const std::vector<Tensor> args = {Tensor::Zeros(DType::kFloat, {3000})};
    std::vector<Tensor> retvals(1);
    std::promise<Status> over;
    std::future<Status> result = over.get_future();
    const double before = ThreadSeconds();
    executor->Start(on_device, args, &retvals, true,
                    [&](Status s) { over.set_value(std::move(s)); });
    const double spent = ThreadSeconds() - before;
    EXPECT_OK(result.get());
    EXPECT_EQ(retvals[0].data<float>()[2999], 20000.0f);
    // The additions take 10 ms at least, of which the caller spends 0.1 on them.
    EXPECT_LT(spent, 0.005 * (kSanitized ? 10 : 1));
  }
}

TEST_F(ExecutorTest, ConstantsAreThereInEachStepWhateverKernelsDoToThem) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output x = Placeholder(DType::kInt32, {}, {.name = "x"});
  // Reshape takes its input away, and fails for sizes that do not fit.
  const Output numbers = Const(Tensor::Vector<int32_t>({1, 2, 3, 4}));
  const Output row = Reshape(numbers, Const(Tensor::Vector<int32_t>({1, 4})));
  const Output of_size = Reshape(numbers, x);
  Identity(Add(Add(row, numbers), of_size), {.name = "y"});
  const auto executor = Prepare(graph);
  for (int repetition = 0; repetition < 3; ++repetition) {
    const ProgramRun run;
    std::vector<Tensor> retvals(1);
    const DeviceRun on_device{run, *devices_[0]};
    EXPECT_OK(executor->Run(on_device, {Tensor::Vector<int32_t>({4})}, &retvals));
    EXPECT_EQ(retvals[0].ToString(), "int32[1,4] 3 6 9 12");
    EXPECT_THAT(executor->Run(on_device, {Tensor::Vector<int32_t>({5})}, &retvals),
                testing::IsError(StatusCode::kInvalidArgument, "4"));
  }
}

TEST_F(ExecutorTest, NodesWithoutInputsOrOutputsRunUnlessTheyDoNothing) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  // A plan in which no node has outputs.
  Node* const first = NoOp();
  Node* last = nullptr;
  {
    const ControlDependencies after({first});
    last = Abort({.error_msg = "wanted", .exit_without_error = true});
  }
  const auto step_graph = MakeStepGraph(graph, {{}, {}, {last->name()}});
  ASSERT_OK(step_graph);
  auto plan = ExecutionPlan::Create(*step_graph, *devices_[0], kernels_.On(*devices_[0]));
  ASSERT_OK(plan);
  Executor executor(*std::move(plan), &pool_);
  const ProgramRun run;
  std::vector<Tensor> retvals;
  EXPECT_THAT(executor.Run({run, *devices_[0]}, {}, &retvals),
              testing::IsError(StatusCode::kAborted, "wanted"));
}

TEST_F(ExecutorTest, WrongArgumentsEndTheOtherPartitionsToo) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  Neg(Placeholder(DType::kFloat, {}, {.name = "x"}), {.name = "y"});
  const auto executor = Prepare(graph);
  LocalRendezvous rendezvous;
  Status received;
  rendezvous.RecvAsync("from this partition",
                       [&](const Status& s, const Tensor&, bool) { received = s; });
  const ProgramRun run{.rendezvous = &rendezvous};
  const std::vector<Tensor> args = {Tensor::Zeros(DType::kInt32, {2})};
  std::vector<Tensor> retvals(1);
  const auto wrong = testing::IsError(StatusCode::kInvalidArgument, "is int32, wanted float");
  EXPECT_THAT(executor->Run({run, *devices_[0]}, args, &retvals), wrong);
  EXPECT_THAT(received, wrong);
}

}  // namespace
}  // namespace tenon
