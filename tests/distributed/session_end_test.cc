// SPDX-License-Identifier: Apache-2.0
//
// Sessions that are closed, given up or left while something is under way: every wait ends, and no
// task keeps anything of them.
#include <absl/cleanup/cleanup.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/base/sanitizers.h"
#include "core/proto/proto_io_graph.h"
#include "distributed/client/remote_session.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "ops/strings/strings_ops.h"
#include "proto/master.pb.h"
#include "tests/distributed/raw_client.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"

namespace tenon {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::IsError;
using testing::RawCaller;
using testing::TestCluster;

const std::string kMaster = "/tensorflow.MasterService/";

/// A variable on the parameter server.
void BuildVariable() {
  const DeviceScope ps("/job:ps/task:0");
  const Output v = VariableV2({2}, DType::kFloat, {.name = "v"});
  Assign(v, {1.0f, 2.0f}, {.name = "init"});
}

/// A loop that never ends, when `limit` is above 0, as long as "result" is asked for.
void BuildLoop(Output limit) {
  const std::vector<Output> results = WhileLoop(
      {0, limit}, [](const std::vector<Output>& v) { return Less(v[0], v[1]); },
      [](const std::vector<Output>& v) {
        return std::vector<Output>{Mul(v[0], v[1]), v[1]};
      },
      {.shape_invariants = {PartialShape(), PartialShape()}});
  Identity(results[0], {.name = "result"});
}

/// One on the worker.
void BuildEndlessLoop() {
  const DeviceScope worker("/job:worker/task:0");
  BuildLoop(Const(1));
}

/// Returns when `server` says that nobody has a session there; false when it never does.
bool HasNoSessions(Server& server) {
  const auto deadline = steady_clock::now() + std::chrono::seconds(10);
  while (steady_clock::now() < deadline) {
    const std::string text = server.Describe();
    if (text.find("\nsession ") == std::string::npos &&
        text.find("steps: 0;") != std::string::npos) {
      return true;
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
  ADD_FAILURE() << server.Describe();
  return false;
}

TEST(SessionEndTest, AServerThatEndsGivesUpWaitingForOtherTasks) {
  TestCluster cluster(1, 1);
  cluster.StartOne("worker", 0);
  Graph graph(AllOps());
  GraphBuilding building(graph);
  BuildVariable();
  Server& worker = cluster.at("worker", 0);
  std::jthread end([&] {
    std::this_thread::sleep_for(milliseconds(300));
    worker.Shutdown();
  });
  const auto begin = steady_clock::now();
  EXPECT_THAT(worker.MakeSession(graph), IsError(StatusCode::kCancelled, "ends"));
  EXPECT_LT(steady_clock::now() - begin, milliseconds(3000));
}

TEST(SessionEndTest, AClientThatGivesUpOpeningASessionLeavesNone) {
  TestCluster cluster(1, 1);
  cluster.StartOne("worker", 0);
  Graph graph(AllOps());
  GraphBuilding building(graph);
  BuildVariable();
  CreateSessionRequest request;
  ASSERT_OK(GraphToProto(graph, request.mutable_graph_def()));
  CreateSessionResponse response;
  RawCaller caller(cluster.at("worker", 0).target());
  EXPECT_EQ(
      caller.Call(kMaster + "CreateSession", request, &response, milliseconds(300)).error_code(),
      grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(HasNoSessions(cluster.at("worker", 0)));
}

TEST(SessionEndTest, AStepThatWaitsForAnExtensionIsGivenUpWithoutIt) {
  TestCluster cluster(2, 1);
  cluster.StartOne("ps", 0);
  cluster.StartOne("worker", 0);
  constexpr int kSteps = 20;
  Graph graph(AllOps());
  GraphBuilding building(graph);
  for (int i = 0; i < kSteps; ++i) Const(1.0f, {.name = StrCat("c", i)});
  CreateSessionRequest create;
  ASSERT_OK(GraphToProto(graph, create.mutable_graph_def()));
  Server& worker = cluster.at("worker", 0);
  const auto answers = [&worker](int calls, std::chrono::seconds limit) {
    const auto deadline = steady_clock::now() + limit;
    while (worker.Describe().find(StrCat("; calls: ", calls, ";")) == std::string::npos) {
      if (steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(milliseconds(10));
    }
    return true;
  };
  RawCaller caller(worker.target());
  CreateSessionResponse session;
  ASSERT_TRUE(caller.Call(kMaster + "CreateSession", create, &session).ok());
  ASSERT_TRUE(answers(0, std::chrono::seconds(10)));
  Graph more(AllOps());
  GraphBuilding building_more(more);
  {
    const DeviceScope ps("/job:ps/task:1");  // who is not there
    Const(1.0f, {.name = "more"});
  }
  ExtendSessionRequest extend;
  extend.set_session_handle(session.session_handle());
  ASSERT_OK(GraphToProto(more, extend.mutable_graph_def()));
  std::jthread extender([&] {
    RawCaller other(worker.target());
    ExtendSessionResponse response;
    EXPECT_FALSE(other.Call(kMaster + "ExtendSession", extend, &response).ok());
  });
  ASSERT_TRUE(answers(1, std::chrono::seconds(10)));
  // The first steps may still be faster than the extension.
  RunStepRequest run;
  run.set_session_handle(session.session_handle());
  grpc::Status status;
  for (int i = 0; i < kSteps && status.ok(); ++i) {
    RunStepResponse ran;
    run.clear_target();
    run.add_target(StrCat("c", i));
    status = caller.Call(kMaster + "RunStep", run, &ran, milliseconds(300));
  }
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message();
  // The extension waits on, the step does not.
  EXPECT_TRUE(answers(1, std::chrono::seconds(3))) << worker.Describe();
  worker.Shutdown();
}

TEST(SessionEndTest, ExtendBesideCloseLeavesNoWorkerSession) {
  TestCluster cluster(2, 1);
  cluster.StartAll();
  Graph more(AllOps());
  GraphBuilding building(more);
  for (const char* device : {"/job:ps/task:0", "/job:ps/task:1"}) {
    const DeviceScope ps(device);
    Const(1.0f);
  }
  ExtendSessionRequest extend;
  ASSERT_OK(GraphToProto(more, extend.mutable_graph_def()));
  const std::string target = cluster.at("worker", 0).target();
  for (int i = 0; i < 30; ++i) {
    RawCaller caller(target);
    CreateSessionResponse session;
    ASSERT_TRUE(caller.Call(kMaster + "CreateSession", CreateSessionRequest(), &session).ok());
    std::jthread extender([&] {
      RawCaller other(target);
      ExtendSessionResponse response;
      extend.set_session_handle(session.session_handle());
      other.Call(kMaster + "ExtendSession", extend, &response);
    });
    std::this_thread::sleep_for(std::chrono::microseconds(i * 100));
    CloseSessionRequest close;
    close.set_session_handle(session.session_handle());
    CloseSessionResponse closed;
    EXPECT_TRUE(caller.Call(kMaster + "CloseSession", close, &closed).ok());
  }
  for (const int task : {0, 1}) EXPECT_TRUE(HasNoSessions(cluster.at("ps", task)));
}

TEST(SessionEndTest, AStepThatCannotBeCompiledLeavesNoPartition) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Graph graph(AllOps());
  GraphBuilding building(graph);
  BuildVariable();
  // That there is no such text is known when the kernel is made.
  {
    const DeviceScope worker("/job:worker/task:0");
    AsString(graph.Find("v"), {.scientific = true, .shortest = true, .name = "text"});
  }
  ASSERT_OK(graph.error());
  auto session = MakeRemoteSession(cluster.at("worker", 0).target(), graph);
  ASSERT_OK(session);
  EXPECT_THAT((*session)->Run({}, {"text"}),
              IsError(StatusCode::kInvalidArgument, "Cannot select both"));
  const auto deadline = steady_clock::now() + std::chrono::seconds(5);
  while (cluster.at("ps", 0).Describe().find(": 0 partitions") == std::string::npos) {
    ASSERT_LT(steady_clock::now(), deadline) << cluster.at("ps", 0).Describe();
    std::this_thread::sleep_for(milliseconds(20));
  }
}

TEST(SessionEndTest, AStepOfANewSignatureBesideCloseSaysThatTheSessionIsClosed) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Graph graph(AllOps());
  GraphBuilding building(graph);
  BuildVariable();
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) {
    const DeviceScope ps("/job:ps/task:0");
    names.push_back(Const({1.0f}).node->name());
  }
  CreateSessionRequest create;
  ASSERT_OK(GraphToProto(graph, create.mutable_graph_def()));
  const std::string target = cluster.at("worker", 0).target();
  for (int i = 0; i < 20; ++i) {
    RawCaller caller(target);
    CreateSessionResponse session;
    ASSERT_TRUE(caller.Call(kMaster + "CreateSession", create, &session).ok());
    std::jthread runner([&] {
      RawCaller other(target);
      RunStepRequest run;
      run.set_session_handle(session.session_handle());
      for (const std::string& name : names) {
        run.clear_target();
        run.add_target(name);
        RunStepResponse response;
        const grpc::Status status = other.Call(kMaster + "RunStep", run, &response);
        if (status.ok()) continue;
        if (status.error_code() == grpc::StatusCode::ABORTED) {
          EXPECT_EQ(status.error_message(),
                    StrCat("Session ", session.session_handle(), " is not found."));
        } else {
          EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED) << status.error_message();
        }
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(i * 300));
    CloseSessionRequest close;
    close.set_session_handle(session.session_handle());
    CloseSessionResponse closed;
    EXPECT_TRUE(caller.Call(kMaster + "CloseSession", close, &closed).ok());
  }
}

/// Listens, and says nothing to those who connect.
class SilentTask {
 public:
  SilentTask() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(listen(fd_, 10), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    address_ = StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  ~SilentTask() { close(fd_); }
  const std::string& address() const { return address_; }

 private:
  const int fd_ = socket(AF_INET, SOCK_STREAM, 0);
  std::string address_;
};

TEST(SessionEndTest, AResetAsksAllTasksAtOnceAndIsNeverUnavailable) {
  const SilentTask silent[3];
  ServerOptions options;
  for (int i = 0; i < 3; ++i) ASSERT_OK(options.cluster.AddTask("ps", i, silent[i].address()));
  ASSERT_OK(options.cluster.AddTask("worker", 0, "127.0.0.1:1"));
  options.job = "worker";
  options.port = 0;
  const auto server = Server::Start(options, AllOps());
  ASSERT_OK(server);
  RawCaller caller((*server)->target());
  ResetResponse response;
  const auto begin = steady_clock::now();
  const grpc::Status status =
      caller.Call(kMaster + "Reset", ResetRequest(), &response, std::chrono::seconds(60));
  // 10 s for a task that is silent; TensorFlow's client would repeat UNAVAILABLE ten times.
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED) << status.error_message();
  EXPECT_NE(status.error_message().find(silent[0].address()), std::string::npos);
}

TEST(SessionEndTest, ManyEqualFetchesAreNoWork) {
  TestCluster cluster(0, 1);
  cluster.StartAll();
  Graph graph(AllOps());
  GraphBuilding building(graph);
  Const(1.0f, {.name = "c"});
  auto session = MakeRemoteSession(cluster.at("worker", 0).target(), graph);
  ASSERT_OK(session);
  const auto begin = steady_clock::now();
  constexpr size_t kFetches = kSanitized ? 3000 : 30'000;
  const auto values = (*session)->Run({}, std::vector<std::string>(kFetches, "c"));
  ASSERT_OK(values);
  EXPECT_EQ(values->size(), kFetches);
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(15));
}

TEST(SessionEndTest, AResetByOneMasterIsSeenByTheSessionsOfOthers) {
  TestCluster cluster(1, 2);
  cluster.StartAll();
  Graph graph(AllOps());
  GraphBuilding building(graph);
  BuildVariable();
  const Output ones = Const({1.0f, 1.0f});
  {
    const DeviceScope ps("/job:ps/task:0");
    AssignAdd(graph.Find("v"), ones, {.name = "add"});
  }
  auto session = MakeRemoteSession(cluster.at("worker", 1).target(), graph);
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {"init"}));
  ASSERT_OK((*session)->Run({}, {}, {"add"}));
  RawCaller caller(cluster.at("worker", 0).target());
  ResetResponse response;
  ASSERT_TRUE(caller.Call(kMaster + "Reset", ResetRequest(), &response).ok());
  // Its variable is gone: it must not train one that nobody else has.
  EXPECT_THAT((*session)->Run({}, {}, {"add"}),
              IsError(StatusCode::kFailedPrecondition, "Attempting to use uninitialized value v"));
  ASSERT_OK((*session)->Run({}, {}, {"init"}));
  auto other = MakeRemoteSession(cluster.at("worker", 0).target(), graph);
  ASSERT_OK(other);
  const auto v = (*other)->Run({}, {"v"});
  ASSERT_OK(v);
  EXPECT_EQ((*v)[0].data<float>()[1], 2.0f);
}

TEST(SessionEndTest, AnIdleSessionIsClosedAndItsWorkerSessionsToo) {
  ServerLimits limits;
  limits.session_timeout = std::chrono::seconds(1);
  TestCluster cluster(1, 1, limits);
  cluster.StartAll();
  Graph graph(AllOps());
  GraphBuilding building(graph);
  BuildVariable();
  auto session = MakeRemoteSession(cluster.at("worker", 0).target(), graph);
  ASSERT_OK(session);
  for (int i = 0; i < 4; ++i) {  // longer than the limit, but never idle for so long
    ASSERT_OK((*session)->Run({}, {}, {"init"}));
    std::this_thread::sleep_for(milliseconds(400));
  }
  EXPECT_TRUE(HasNoSessions(cluster.at("worker", 0)));
  EXPECT_TRUE(HasNoSessions(cluster.at("ps", 0)));
  EXPECT_THAT((*session)->Run({}, {}, {"init"}), IsError(StatusCode::kAborted, "is not found"));
}

TEST(SessionEndTest, AStepEndsWithTheConnectionThatAskedForIt) {
  TestCluster cluster(0, 1);
  cluster.StartAll();
  Graph graph(AllOps());
  GraphBuilding building(graph);
  BuildEndlessLoop();
  ASSERT_OK(graph.error());
  Server& server = cluster.at("worker", 0);
  RawCaller caller(server.target());
  CreateSessionRequest create;
  ASSERT_OK(GraphToProto(graph, create.mutable_graph_def()));
  CreateSessionResponse session;
  ASSERT_TRUE(caller.Call(kMaster + "CreateSession", create, &session).ok());
  RunStepRequest run;
  run.set_session_handle(session.session_handle());
  run.add_target("result");
  RunStepResponse ran;
  EXPECT_EQ(caller.Call(kMaster + "RunStep", run, &ran, milliseconds(300)).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  const auto deadline = steady_clock::now() + std::chrono::seconds(5);
  while (server.Describe().find("idle for") == std::string::npos) {
    ASSERT_LT(steady_clock::now(), deadline) << server.Describe();
    std::this_thread::sleep_for(milliseconds(20));
  }
}

TEST(SessionEndTest, StoppingAServerEndsTheStepsOfItsOwnProcess) {
  TestCluster cluster(0, 1);
  cluster.StartAll();
  Graph graph(AllOps());
  GraphBuilding building(graph);
  BuildEndlessLoop();
  auto session = cluster.at("worker", 0).MakeSession(graph);
  ASSERT_OK(session);
  std::jthread stop([&] {
    std::this_thread::sleep_for(milliseconds(300));
    EXPECT_OK(StopServer(cluster.at("worker", 0).target(), "tenon stop"));
  });
  EXPECT_THAT((*session)->Run({}, {}, {"result"}),
              IsError(StatusCode::kCancelled, "ends: tenon stop"));
  EXPECT_THAT((*session)->Run({}, {}, {"result"}), IsError(StatusCode::kCancelled, "tenon stop"));
}

TEST(SessionEndTest, StepsThatNeverEndLeaveTimeForOthers) {
  TestCluster cluster(0, 1);
  cluster.StartAll();
  Graph graph(AllOps());
  GraphBuilding building(graph);
  BuildLoop(Placeholder(DType::kInt32, {}, {.name = "limit"}));
  const std::string& target = cluster.at("worker", 0).target();
  std::vector<std::unique_ptr<Session>> endless;
  std::vector<std::jthread> runs;
  const absl::Cleanup close = [&endless] {
    for (auto& session : endless) EXPECT_OK(session->Close());
  };
  for (int i = 0; i < 8; ++i) {  // the server has two threads
    auto session = MakeRemoteSession(target, graph);
    ASSERT_OK(session);
    endless.push_back(*std::move(session));
    // What its kernels took in this run, none, says nothing of the next.
    ASSERT_OK(endless.back()->Run({{"limit", Tensor::Scalar(0)}}, {"result"}));
    runs.emplace_back([&session = *endless.back()] {
      EXPECT_THAT(session.Run({{"limit", Tensor::Scalar(1)}}, {"result"}),
                  IsError(StatusCode::kCancelled, ""));
    });
  }
  std::this_thread::sleep_for(milliseconds(300));
  Graph other(AllOps());
  GraphBuilding building_other(other);
  Mul(Const({2.0f, 3.0f}), 5.0f, {.name = "product"});
  auto session = MakeRemoteSession(target, other);
  ASSERT_OK(session);
  const auto begin = steady_clock::now();
  for (int i = 0; i < 10; ++i) {
    const auto product = (*session)->Run({}, {"product"});
    ASSERT_OK(product);
    EXPECT_EQ((*product)[0].flat<float>()[1], 15);
  }
  // Each run waits a few times, for the turns of four steps.
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(kSanitized ? 60 : 10));
}

TEST(SessionEndTest, ShutdownWaitsThoughAnotherThreadShutsDownToo) {
  TestCluster cluster(0, 1);
  cluster.StartAll();
  Graph graph(AllOps());
  GraphBuilding building(graph);
  BuildEndlessLoop();
  Server& server = cluster.at("worker", 0);
  auto session = MakeRemoteSession(server.target(), graph);
  ASSERT_OK(session);
  std::jthread run([&] { EXPECT_FALSE((*session)->Run({}, {}, {"result"}).ok()); });
  std::this_thread::sleep_for(milliseconds(200));
  std::jthread other([&] { server.Shutdown(); });
  server.Shutdown();
  testing::RawSocket late(server.port());
  EXPECT_FALSE(late.connected());
}

}  // namespace
}  // namespace tenon
