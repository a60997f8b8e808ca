// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/server.h"

#include <gtest/gtest.h>

#include <thread>

#include "distributed/client/remote_session.h"
#include "ops/array/array_ops.h"
#include "ops/math/math_ops.h"
#include "ops/random/random_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"

namespace tenon {
namespace {

using testing::IsError;
using testing::TestCluster;

/// A variable on the parameter server, updated with what the worker computes from the feed.
void BuildCounter() {
  Output v, twice;
  {
    const DeviceScope ps("/job:ps/task:0");
    v = VariableV2({2}, DType::kFloat, {.name = "v"});
    Assign(v, {1.0f, 2.0f}, {.name = "init"});
  }
  {
    const DeviceScope worker("/job:worker/task:0");
    twice = Mul(Placeholder(DType::kFloat, {}, {.name = "x"}), 2.0f);
    Neg(v, {.name = "minus"});
  }
  const DeviceScope ps("/job:ps/task:0");
  AssignAdd(v, twice, {.name = "add"});
}

TEST(ServerTest, AStepRunsAcrossTwoTasks) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Graph graph(AllOps());
  GraphBuilding building(graph);
  BuildCounter();
  ASSERT_OK(graph.error());
  auto session = MakeRemoteSession(cluster.at("worker", 0).target(), graph);
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {"init"}));
  for (int i = 1; i <= 20; ++i) {
    ASSERT_OK((*session)->Run({{"x", Tensor::Vector({1.0f, 10.0f})}}, {}, {"add"}));
    const auto minus = (*session)->Run({}, {"minus"});
    ASSERT_OK(minus);
    EXPECT_EQ((*minus)[0].data<float>()[0], -(1.0f + 2 * i));
    EXPECT_EQ((*minus)[0].data<float>()[1], -(2.0f + 20 * i));
  }
}

TEST(ServerTest, AServerMayEndRightAfterItsLastStep) {
  // The threads of the step are still about to let go of what they ran.
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const DeviceScope worker("/job:worker/task:0");
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  const Output y = Neg(Fill({1 << 20}, x), {.name = "y"});
  ASSERT_OK(graph.error());
  for (int i = 0; i < 50; ++i) {
    TestCluster cluster(0, 1);
    cluster.StartAll();
    const auto session = cluster.at("worker", 0).MakeSession(graph);
    ASSERT_OK(session);
    ASSERT_OK((*session)->Run({{"x", Tensor::Scalar(1.0f)}}, {}, {y.node->name()}));
  }
}

TEST(ServerTest, VariablesOutliveTheSessionThatMadeThem) {
  TestCluster cluster(1, 2);
  cluster.StartAll();
  Graph graph(AllOps());
  GraphBuilding building(graph);
  BuildCounter();
  {
    auto session = MakeRemoteSession(cluster.at("worker", 0).target(), graph);
    ASSERT_OK(session);
    ASSERT_OK((*session)->Run({}, {}, {"init"}));
  }
  auto session = MakeRemoteSession(cluster.at("worker", 1).target(), graph);
  ASSERT_OK(session);
  const auto v = (*session)->Run({}, {"v"});
  ASSERT_OK(v);
  EXPECT_EQ((*v)[0].data<float>()[1], 2.0f);
}

TEST(ServerTest, TheSessionOfTheOwnServerNeedsNoNetwork) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Graph graph(AllOps());
  GraphBuilding building(graph);
  BuildCounter();
  auto session = cluster.at("worker", 0).MakeSession(graph);
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {"init"}));
  EXPECT_EQ((*(*session)->Run({}, {"v"}))[0].data<float>()[0], 1.0f);
}

TEST(ServerTest, AnErrorOfTheParameterServerReachesTheClient) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Graph graph(AllOps());
  GraphBuilding building(graph);
  BuildCounter();
  auto session = MakeRemoteSession(cluster.at("worker", 0).target(), graph);
  ASSERT_OK(session);
  EXPECT_THAT((*session)->Run({}, {"minus"}),
              IsError(StatusCode::kFailedPrecondition, "Attempting to use uninitialized value v"));
  ASSERT_OK((*session)->Run({}, {}, {"init"}));
  EXPECT_OK((*session)->Run({}, {"minus"}));
}

TEST(ServerTest, AStepOfOneLongKernelThatIsLateFailsToo) {
  TestCluster cluster(1, 0);
  cluster.StartAll();
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output x = RandomUniform({1000, 1000}, DType::kFloat);
  const Output y = MatMul(x, x);
  const auto session = MakeRemoteSession(cluster.at("ps", 0).target(), graph);
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {y}));
  StepOptions options;
  options.timeout = std::chrono::milliseconds(1);
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT((*session)->Run({}, {}, {y}, options),
                IsError(StatusCode::kDeadlineExceeded, "the step took longer than 1 ms"));
  }
}

TEST(ServerTest, AMissingParameterServerIsNamed) {
  TestCluster cluster(1, 1);
  cluster.StartOne("worker", 0);
  Graph graph(AllOps());
  GraphBuilding building(graph);
  BuildCounter();
  const auto session = MakeRemoteSession(cluster.at("worker", 0).target(), graph);
  EXPECT_THAT(session, IsError(StatusCode::kDeadlineExceeded,
                               StrCat("task /job:ps/replica:0/task:0 at ",
                                      *cluster.spec().Address("ps", 0), " did not answer")));
}

TEST(ServerTest, AParameterServerThatDiesMakesTheStepUnavailable) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Graph graph(AllOps());
  GraphBuilding building(graph);
  BuildCounter();
  auto session = MakeRemoteSession(cluster.at("worker", 0).target(), graph);
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {"init"}));
  cluster.Stop("ps", 0);
  EXPECT_THAT((*session)->Run({}, {"minus"}),
              IsError(StatusCode::kUnavailable, "/job:ps/replica:0/task:0"));
}

TEST(ServerTest, ARestartedParameterServerAborts) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Graph graph(AllOps());
  GraphBuilding building(graph);
  BuildCounter();
  auto session = MakeRemoteSession(cluster.at("worker", 0).target(), graph);
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {"init"}));
  cluster.Stop("ps", 0);
  cluster.StartOne("ps", 0);
  Status status;
  // The channel needs a moment to connect again.
  for (int i = 0; i < 50; ++i) {
    status = (*session)->Run({}, {"minus"}).status();
    if (status.code() != StatusCode::kUnavailable) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_THAT(status, IsError(StatusCode::kAborted, "just restarted"));
}

TEST(ServerTest, APortInUseIsNamed) {
  TestCluster cluster(1, 0);
  cluster.StartAll();
  ServerOptions options;
  options.cluster = cluster.spec();
  options.job = "ps";
  EXPECT_THAT(Server::Start(options, AllOps()),
              IsError(StatusCode::kUnavailable, "Address already in use"));
}

TEST(ServerTest, AJobEndsWhenAllItsTasksHaveReported) {
  TestCluster cluster(1, 2);
  cluster.StartAll();
  std::thread workers([&] {
    cluster.at("worker", 0).ReportEnd("ps", OkStatus());
    cluster.at("worker", 1).ReportEnd("ps", OkStatus());
  });
  EXPECT_OK(cluster.at("ps", 0).WaitForJobEnd("worker", std::chrono::milliseconds(10000)));
  workers.join();
}

TEST(ServerTest, AFailedTaskFailsTheJob) {
  TestCluster cluster(1, 2);
  cluster.StartAll();
  cluster.at("worker", 1).ReportEnd("ps", Internal("out of luck"));
  EXPECT_THAT(cluster.at("ps", 0).WaitForJobEnd("worker", std::chrono::milliseconds(10000)),
              IsError(StatusCode::kAborted, "/job:worker/replica:0/task:1 failed: out of luck"));
}

TEST(ServerTest, ATaskThatEndsBeforeThePsHasStartedIsHeard) {
  TestCluster cluster(1, 1);
  cluster.StartOne("worker", 0);
  std::thread worker(
      [&] { cluster.at("worker", 0).ReportEnd("ps", Internal("no data where it was")); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  cluster.StartOne("ps", 0);
  EXPECT_THAT(cluster.at("ps", 0).WaitForJobEnd("worker", std::chrono::milliseconds(10000)),
              IsError(StatusCode::kAborted, "no data where it was"));
  worker.join();
}

TEST(ServerTest, AJobThatFailedEndsTheTasksThatWaitForOthers) {
  TestCluster cluster(2, 2);
  cluster.StartOne("ps", 0);
  cluster.StartOne("worker", 0);
  cluster.StartOne("worker", 1);
  // One waits for a parameter server that has not come, one has failed before it reached any.
  std::jthread failed([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    cluster.at("worker", 1).ReportEnd("ps", Internal("no data where it was"));
  });
  std::jthread server([&] {
    const Status end = cluster.at("ps", 0).WaitForJobEnd("worker", std::chrono::minutes(5));
    cluster.at("ps", 0).EndTasks("worker", end);
  });
  const auto begin = std::chrono::steady_clock::now();
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const DeviceScope elsewhere("/job:ps/task:1");
  Placeholder(DType::kFloat, Shape());
  EXPECT_THAT(cluster.at("worker", 0).MakeSession(graph),
              IsError(StatusCode::kCancelled,
                      "the server of /job:worker/replica:0/task:0 ends: "
                      "/job:worker/replica:0/task:1 failed: no data where it was"));
  // It has nobody to tell any more.
  cluster.at("worker", 0).ReportEnd("ps", Internal("ended"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(9));
}

TEST(ServerTest, AFailedStartIsToldUnlessTheTaskIsThere) {
  TestCluster cluster(1, 2);
  cluster.StartOne("ps", 0);
  cluster.StartOne("worker", 0);
  ServerOptions options;
  options.cluster = cluster.spec();
  options.job = "worker";
  ReportFailedStart(options, "ps", Internal("started twice"));
  options.task = 1;
  ReportFailedStart(options, "ps", Internal("no such address here"));
  EXPECT_THAT(
      cluster.at("ps", 0).WaitForJobEnd("worker", std::chrono::minutes(5)),
      IsError(StatusCode::kAborted, "/job:worker/replica:0/task:1 failed: no such address here"));
}

TEST(ServerTest, AWorkerThatVanishesFailsTheJobAfterTheLimit) {
  TestCluster cluster(1, 2);
  cluster.StartAll();
  std::thread death([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(3000));
    cluster.Stop("worker", 1);
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(cluster.at("ps", 0).WaitForJobEnd("worker", std::chrono::milliseconds(2000)),
              IsError(StatusCode::kDeadlineExceeded, "/job:worker/replica:0/task:1 at 127.0.0.1"));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(3000));
  death.join();
}

TEST(ServerTest, ShutdownByRpcEndsTheWait) {
  TestCluster cluster(1, 0);
  cluster.StartAll();
  std::thread stopper([&] { EXPECT_OK(StopServer(cluster.at("ps", 0).target(), "test")); });
  cluster.at("ps", 0).WaitForShutdown();
  stopper.join();
}

}  // namespace
}  // namespace tenon
