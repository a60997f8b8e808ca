// SPDX-License-Identifier: Apache-2.0
#include "distributed/server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "distributed/remote_session.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/state_ops.h"
#include "tests/testing/registry.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::AllOps;
using testing::IsError;

/// A port that nobody listens on now.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  close(fd);
  return ntohs(address.sin_port);
}

/// The tasks of a cluster as servers of this process, over real gRPC.
class TestCluster {
 public:
  TestCluster(int num_ps, int num_workers) {
    for (int i = 0; i < num_ps; ++i) Add("ps", i);
    for (int i = 0; i < num_workers; ++i) Add("worker", i);
  }
  const ClusterSpec& spec() const { return spec_; }

  void StartAll() {
    for (const auto& [job, tasks] : spec_.jobs()) {
      for (const auto& [task, address] : tasks) StartOne(job, task);
    }
  }
  void StartOne(const std::string& job, int task) {
    ServerOptions options;
    options.cluster = spec_;
    options.job = job;
    options.task = task;
    options.threads = 2;
    options.start_up_deadline = std::chrono::milliseconds(5000);
    auto server = Server::Start(options, AllOps());
    ASSERT_OK(server);
    servers_[{job, task}] = *std::move(server);
  }
  Server& at(const std::string& job, int task) { return *servers_.at({job, task}); }
  void Stop(const std::string& job, int task) { servers_.erase({job, task}); }

 private:
  void Add(const std::string& job, int task) {
    ASSERT_OK(spec_.AddTask(job, task, StrCat("127.0.0.1:", FreePort())));
  }
  ClusterSpec spec_;
  std::map<std::pair<std::string, int>, std::unique_ptr<Server>> servers_;
};

/// A variable on the parameter server, updated with what the worker computes from the feed.
void BuildCounter(const Scope& root) {
  const Scope ps = root.WithDevice("/job:ps/task:0");
  const Scope worker = root.WithDevice("/job:worker/task:0");
  const Output v = VariableV2(ps.WithName("v"), {2}, DType::kFloat);
  Assign(ps.WithName("init"), v, Const(ps, {1.0f, 2.0f}));
  const Output x = Placeholder(worker.WithName("x"), DType::kFloat);
  AssignAdd(ps.WithName("add"), v, Mul(worker, x, Const(worker, 2.0f)));
  Neg(worker.WithName("minus"), v);
}

TEST(ServerTest, AStepRunsAcrossTwoTasks) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  const Scope root = Scope::Root(AllOps());
  BuildCounter(root);
  ASSERT_OK(root.status());
  auto session = MakeRemoteSession(cluster.at("worker", 0).target(), root.graph());
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

TEST(ServerTest, VariablesOutliveTheSessionThatMadeThem) {
  TestCluster cluster(1, 2);
  cluster.StartAll();
  const Scope root = Scope::Root(AllOps());
  BuildCounter(root);
  {
    auto session = MakeRemoteSession(cluster.at("worker", 0).target(), root.graph());
    ASSERT_OK(session);
    ASSERT_OK((*session)->Run({}, {}, {"init"}));
  }
  auto session = MakeRemoteSession(cluster.at("worker", 1).target(), root.graph());
  ASSERT_OK(session);
  const auto v = (*session)->Run({}, {"v"});
  ASSERT_OK(v);
  EXPECT_EQ((*v)[0].data<float>()[1], 2.0f);
}

TEST(ServerTest, TheSessionOfTheOwnServerNeedsNoNetwork) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  const Scope root = Scope::Root(AllOps());
  BuildCounter(root);
  auto session = cluster.at("worker", 0).MakeSession(root.graph());
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {"init"}));
  EXPECT_EQ((*(*session)->Run({}, {"v"}))[0].data<float>()[0], 1.0f);
}

TEST(ServerTest, AnErrorOfTheParameterServerReachesTheClient) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  const Scope root = Scope::Root(AllOps());
  BuildCounter(root);
  auto session = MakeRemoteSession(cluster.at("worker", 0).target(), root.graph());
  ASSERT_OK(session);
  EXPECT_THAT((*session)->Run({}, {"minus"}),
              IsError(StatusCode::kFailedPrecondition, "Attempting to use uninitialized value v"));
  ASSERT_OK((*session)->Run({}, {}, {"init"}));
  EXPECT_OK((*session)->Run({}, {"minus"}));
}

TEST(ServerTest, AMissingParameterServerIsNamed) {
  TestCluster cluster(1, 1);
  cluster.StartOne("worker", 0);
  const Scope root = Scope::Root(AllOps());
  BuildCounter(root);
  const auto session = MakeRemoteSession(cluster.at("worker", 0).target(), root.graph());
  EXPECT_THAT(session, IsError(StatusCode::kDeadlineExceeded,
                               StrCat("task /job:ps/replica:0/task:0 at ",
                                      *cluster.spec().Address("ps", 0), " did not answer")));
}

TEST(ServerTest, AParameterServerThatDiesMakesTheStepUnavailable) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  const Scope root = Scope::Root(AllOps());
  BuildCounter(root);
  auto session = MakeRemoteSession(cluster.at("worker", 0).target(), root.graph());
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {"init"}));
  cluster.Stop("ps", 0);
  EXPECT_THAT((*session)->Run({}, {"minus"}),
              IsError(StatusCode::kUnavailable, "/job:ps/replica:0/task:0"));
}

TEST(ServerTest, ARestartedParameterServerAborts) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  const Scope root = Scope::Root(AllOps());
  BuildCounter(root);
  auto session = MakeRemoteSession(cluster.at("worker", 0).target(), root.graph());
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

TEST(ServerTest, AWorkerThatVanishesFailsTheJobAfterTheLimit) {
  TestCluster cluster(1, 2);
  cluster.StartAll();
  cluster.at("worker", 0).ReportEnd("ps", OkStatus());
  EXPECT_THAT(cluster.at("ps", 0).WaitForJobEnd("worker", std::chrono::milliseconds(200)),
              IsError(StatusCode::kDeadlineExceeded, "/job:worker/replica:0/task:1 at 127.0.0.1"));
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
