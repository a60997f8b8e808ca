// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/server.h"

#include <gtest/gtest.h>

#include <thread>

#include "ops/array/array_ops.h"
#include "ops/math/math_ops.h"
#include "ops/random/random_ops.h"
#include "ops/state/state_ops.h"
#include "tests/distributed/cluster_fixture.h"
#include "tests/testing/gives.h"

namespace tenon {
namespace {

using std::chrono::milliseconds;
using testing::Gives;
using testing::IsError;
using testing::TestCluster;

class ServerTest : public testing::ClusterFixture {
 protected:
  /// A variable on the parameter server, updated with what the worker computes from the feed.
  static void BuildCounter() {
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
  /// A cluster of one parameter server and one worker, with a session of the counter's graph.
  void StartCounter() {
    StartCluster(1, 1);
    BuildCounter();
    Open(worker());
  }
  Status Init() { return session_->Run({}, {}, {"init"}).status(); }
  StatusOr<std::vector<float>> Value(const std::string& fetch) {
    return session_->Run<std::vector<float>>({}, fetch);
  }
};

TEST_F(ServerTest, AStepRunsAcrossTwoTasks) {
  StartCounter();
  ASSERT_OK(Init());
  for (int i = 1; i <= 20; ++i) {
    ASSERT_OK(session_->Run({{"x", {1.0f, 10.0f}}}, {}, {"add"}));
    EXPECT_THAT(Value("minus"), Gives(std::vector<float>{-(1.0f + 2 * i), -(2.0f + 20 * i)}));
  }
}

TEST_F(ServerTest, AServerMayEndRightAfterItsLastStep) {
  // The threads of the step are still about to let go of what they ran.
  const DeviceScope there("/job:worker/task:0");
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  const Output y = Neg(Fill({1 << 20}, x), {.name = "y"});
  ASSERT_OK(graph_.error());
  for (int i = 0; i < 50; ++i) {
    TestCluster cluster(0, 1);
    cluster.StartAll();
    const auto session = cluster.at("worker", 0).MakeSession(graph_);
    ASSERT_OK(session);
    ASSERT_OK((*session)->Run({{"x", 1.0f}}, {}, {y.node->name()}));
  }
}

TEST_F(ServerTest, VariablesOutliveTheSessionThatMadeThem) {
  StartCluster(1, 2);
  BuildCounter();
  Open(worker(0));
  ASSERT_OK(Init());
  session_ = nullptr;
  Open(worker(1));
  EXPECT_THAT(Value("v"), Gives(std::vector<float>{1, 2}));
}

TEST_F(ServerTest, TheSessionOfTheOwnServerNeedsNoNetwork) {
  StartCluster(1, 1);
  BuildCounter();
  auto session = worker().MakeSession(graph_);
  ASSERT_OK(session);
  session_ = *std::move(session);
  ASSERT_OK(Init());
  EXPECT_THAT(Value("v"), Gives(std::vector<float>{1, 2}));
}

TEST_F(ServerTest, AnErrorOfTheParameterServerReachesTheClient) {
  StartCounter();
  EXPECT_THAT(Value("minus"),
              IsError(StatusCode::kFailedPrecondition, "Attempting to use uninitialized value v"));
  ASSERT_OK(Init());
  EXPECT_OK(Value("minus"));
}

TEST_F(ServerTest, AStepOfOneLongKernelThatIsLateFailsToo) {
  StartCluster(1, 0);
  const Output x = RandomUniform({1000, 1000}, DType::kFloat);
  const Output y = MatMul(x, x);
  Open(ps());
  ASSERT_OK(session_->Run({}, {}, {y}));
  StepOptions options;
  options.timeout = milliseconds(1);
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(session_->Run({}, {}, {y}, options),
                IsError(StatusCode::kDeadlineExceeded, "the step took longer than 1 ms"));
  }
}

TEST_F(ServerTest, AMissingParameterServerIsNamed) {
  MakeCluster(1, 1);
  cluster_->StartOne("worker", 0);
  BuildCounter();
  EXPECT_THAT(MakeRemoteSession(worker().target(), graph_),
              IsError(StatusCode::kDeadlineExceeded,
                      StrCat("task /job:ps/replica:0/task:0 at ",
                             *cluster_->spec().Address("ps", 0), " did not answer")));
}

TEST_F(ServerTest, AParameterServerThatDiesMakesTheStepUnavailable) {
  StartCounter();
  ASSERT_OK(Init());
  cluster_->Stop("ps", 0);
  EXPECT_THAT(Value("minus"), IsError(StatusCode::kUnavailable, "/job:ps/replica:0/task:0"));
}

TEST_F(ServerTest, ARestartedParameterServerAborts) {
  StartCounter();
  ASSERT_OK(Init());
  cluster_->Stop("ps", 0);
  cluster_->StartOne("ps", 0);
  Status status;
  // The channel needs a moment to connect again.
  for (int i = 0; i < 300; ++i) {
    status = Value("minus").status();
    if (status.code() != StatusCode::kUnavailable) break;
    std::this_thread::sleep_for(milliseconds(100));
  }
  EXPECT_THAT(status, IsError(StatusCode::kAborted, "just restarted"));
}

TEST_F(ServerTest, APortInUseIsNamed) {
  StartCluster(1, 0);
  ServerOptions options;
  options.cluster = cluster_->spec();
  options.job = "ps";
  EXPECT_THAT(Server::Start(options, AllOps()),
              IsError(StatusCode::kUnavailable, "Address already in use"));
}

TEST_F(ServerTest, AJobEndsWhenAllItsTasksHaveReported) {
  StartCluster(1, 2);
  std::thread workers([&] {
    worker().ReportEnd("ps", OkStatus());
    worker(1).ReportEnd("ps", OkStatus());
  });
  EXPECT_OK(ps().WaitForJobEnd("worker", {milliseconds(10000)}));
  workers.join();
}

TEST_F(ServerTest, AFailedTaskFailsTheJob) {
  StartCluster(1, 2);
  worker(1).ReportEnd("ps", Internal("out of luck"));
  EXPECT_THAT(ps().WaitForJobEnd("worker", {milliseconds(10000)}),
              IsError(StatusCode::kAborted, "/job:worker/replica:0/task:1 failed: out of luck"));
}

TEST_F(ServerTest, ATaskThatEndsBeforeThePsHasStartedIsHeard) {
  MakeCluster(1, 1);
  cluster_->StartOne("worker", 0);
  std::thread end([&] { worker().ReportEnd("ps", Internal("no data where it was")); });
  std::this_thread::sleep_for(milliseconds(300));
  cluster_->StartOne("ps", 0);
  EXPECT_THAT(ps().WaitForJobEnd("worker", {milliseconds(10000)}),
              IsError(StatusCode::kAborted, "no data where it was"));
  end.join();
}

TEST_F(ServerTest, AJobThatFailedEndsTheTasksThatWaitForOthers) {
  MakeCluster(2, 2);
  cluster_->StartOne("ps", 0);
  cluster_->StartOne("worker", 0);
  cluster_->StartOne("worker", 1);
  // One waits for a parameter server that has not come, one has failed before it reached any.
  std::jthread failed([&] {
    std::this_thread::sleep_for(milliseconds(500));
    worker(1).ReportEnd("ps", Internal("no data where it was"));
  });
  std::jthread server([&] {
    const Status end = ps().WaitForJobEnd("worker", {std::chrono::minutes(5)});
    ps().EndTasks("worker", end);
  });
  const auto begin = std::chrono::steady_clock::now();
  const DeviceScope elsewhere("/job:ps/task:1");
  Placeholder(DType::kFloat, Shape());
  EXPECT_THAT(worker().MakeSession(graph_),
              IsError(StatusCode::kCancelled,
                      "the server of /job:worker/replica:0/task:0 ends: "
                      "/job:worker/replica:0/task:1 failed: no data where it was"));
  // It has nobody to tell any more.
  worker().ReportEnd("ps", Internal("ended"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(9));
}

TEST_F(ServerTest, AFailedStartIsToldUnlessTheTaskIsThere) {
  MakeCluster(1, 2);
  cluster_->StartOne("ps", 0);
  cluster_->StartOne("worker", 0);
  ServerOptions options;
  options.cluster = cluster_->spec();
  options.job = "worker";
  ReportFailedStart(options, "ps", Internal("started twice"), milliseconds(0));
  options.task = 1;
  ReportFailedStart(options, "ps", Internal("no such address here"), milliseconds(0));
  EXPECT_THAT(
      ps().WaitForJobEnd("worker", {std::chrono::minutes(5)}),
      IsError(StatusCode::kAborted, "/job:worker/replica:0/task:1 failed: no such address here"));
}

TEST_F(ServerTest, AWorkerThatVanishesFailsTheJobAfterTheLimit) {
  StartCluster(1, 2);
  std::thread death([&] {
    std::this_thread::sleep_for(milliseconds(3000));
    cluster_->Stop("worker", 1);
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(ps().WaitForJobEnd("worker", {milliseconds(2000)}),
              IsError(StatusCode::kDeadlineExceeded, "/job:worker/replica:0/task:1 at 127.0.0.1"));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(3000));
  death.join();
}

TEST_F(ServerTest, ShutdownByRpcEndsTheWait) {
  StartCluster(1, 0);
  std::thread stopper([&] { EXPECT_OK(StopServer(ps().target(), "test")); });
  ps().WaitForShutdown();
  stopper.join();
}

}  // namespace
}  // namespace tenon
