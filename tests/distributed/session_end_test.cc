// SPDX-License-Identifier: Apache-2.0
//
// Sessions that are closed, given up or left while something is under way: every wait ends, and no
// task keeps anything of them.
#include <absl/cleanup/cleanup.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/base/sanitizers.h"
#include "core/proto/proto_io_graph.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/state/state_ops.h"
#include "ops/strings/strings_ops.h"
#include "proto/master.pb.h"
#include "tests/distributed/cluster_fixture.h"
#include "tests/distributed/raw_client.h"
#include "tests/testing/cpu_time.h"
#include "tests/testing/gives.h"

namespace tenon {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::Gives;
using testing::IsError;
using testing::RawCaller;

/// A client that gives up a call when it likes to, which a RemoteSession does not.
class RawMaster {
 public:
  explicit RawMaster(const Server& server) : caller_(server.target()) {}

  /// Opens the session that the other calls are for.
  grpc::Status CreateSession(const Graph& graph, milliseconds limit = std::chrono::seconds(20)) {
    CreateSessionRequest request;
    EXPECT_OK(GraphToProto(graph, request.mutable_graph_def()));
    CreateSessionResponse response;
    const grpc::Status status = Call("CreateSession", request, &response, limit);
    handle_ = response.session_handle();
    return status;
  }
  grpc::Status ExtendSession(const std::string& session, const Graph& more) {
    ExtendSessionRequest request;
    request.set_session_handle(session);
    EXPECT_OK(GraphToProto(more, request.mutable_graph_def()));
    ExtendSessionResponse response;
    return Call("ExtendSession", request, &response);
  }
  grpc::Status RunStep(const std::string& session, const std::string& node,
                       milliseconds limit = std::chrono::seconds(20)) {
    RunStepRequest request;
    request.set_session_handle(session);
    request.add_target(node);
    RunStepResponse response;
    return Call("RunStep", request, &response, limit);
  }
  grpc::Status CloseSession() {
    CloseSessionRequest request;
    request.set_session_handle(handle_);
    CloseSessionResponse response;
    return Call("CloseSession", request, &response);
  }
  /// Forgets what the devices of all tasks hold.
  grpc::Status Reset(milliseconds limit = std::chrono::seconds(20)) {
    ResetResponse response;
    return Call("Reset", ResetRequest(), &response, limit);
  }

  const std::string& session() const { return handle_; }

 private:
  template <typename Request, typename Response>
  grpc::Status Call(const std::string& method, const Request& request, Response* response,
                    milliseconds limit = std::chrono::seconds(20)) {
    return caller_.Call("/tensorflow.MasterService/" + method, request, response, limit);
  }

  RawCaller caller_;
  std::string handle_;
};

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

/// Returns when `server` says that nobody has a session there; false when it never does.
bool HasNoSessions(Server& server) {
  const auto deadline = steady_clock::now() + std::chrono::seconds(60);
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

/// Returns when `server` says `text` of itself; false when it does not within the limit.
bool Says(Server& server, const std::string& text, milliseconds limit = std::chrono::seconds(60)) {
  const auto deadline = steady_clock::now() + limit;
  while (server.Describe().find(text) == std::string::npos) {
    if (steady_clock::now() > deadline) {
      ADD_FAILURE() << server.Describe();
      return false;
    }
    std::this_thread::sleep_for(milliseconds(10));
  }
  return true;
}

class SessionEndTest : public testing::ClusterFixture {
 protected:
  /// A variable on the parameter server.
  static void BuildVariable() {
    const DeviceScope ps("/job:ps/task:0");
    const Output v = VariableV2({2}, DType::kFloat, {.name = "v"});
    Assign(v, {1.0f, 2.0f}, {.name = "init"});
  }
  /// A loop on the worker that never ends.
  static void BuildEndlessLoop() {
    const DeviceScope worker("/job:worker/task:0");
    BuildLoop(Const(1));
  }
  Status RunNode(const std::string& node) { return session_->Run({}, {}, {node}).status(); }
};

TEST_F(SessionEndTest, AServerThatEndsGivesUpWaitingForOtherTasks) {
  MakeCluster(1, 1);
  cluster_->StartOne("worker", 0);
  BuildVariable();
  std::jthread end([&] {
    std::this_thread::sleep_for(milliseconds(300));
    worker().Shutdown();
  });
  const auto begin = steady_clock::now();
  EXPECT_THAT(worker().MakeSession(graph_), IsError(StatusCode::kCancelled, "ends"));
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(15));
}

TEST_F(SessionEndTest, AClientThatGivesUpOpeningASessionLeavesNone) {
  MakeCluster(1, 1);
  cluster_->StartOne("worker", 0);
  BuildVariable();
  RawMaster master(worker());
  EXPECT_EQ(master.CreateSession(graph_, milliseconds(300)).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(HasNoSessions(worker()));
}

TEST_F(SessionEndTest, AStepThatWaitsForAnExtensionIsGivenUpWithoutIt) {
  MakeCluster(2, 1);
  cluster_->StartOne("ps", 0);
  cluster_->StartOne("worker", 0);
  constexpr int kSteps = 20;
  for (int i = 0; i < kSteps; ++i) Const(1.0f, {.name = StrCat("c", i)});
  RawMaster master(worker());
  ASSERT_TRUE(master.CreateSession(graph_).ok());
  ASSERT_TRUE(Says(worker(), "; calls: 0;"));
  Graph more(AllOps());
  const GraphBuilding building_more(more);
  {
    const DeviceScope absent("/job:ps/task:1");
    Const(1.0f, {.name = "more"});
  }
  std::jthread extender(
      [&] { EXPECT_FALSE(RawMaster(worker()).ExtendSession(master.session(), more).ok()); });
  ASSERT_TRUE(Says(worker(), "; calls: 1;"));
  // The first steps may still be faster than the extension.
  grpc::Status status;
  for (int i = 0; i < kSteps && status.ok(); ++i) {
    status = master.RunStep(master.session(), StrCat("c", i), milliseconds(300));
  }
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message();
  // The extension waits on, the step does not.
  EXPECT_TRUE(Says(worker(), "; calls: 1;", std::chrono::seconds(3)));
  worker().Shutdown();
}

TEST_F(SessionEndTest, ExtendBesideCloseLeavesNoWorkerSession) {
  StartCluster(2, 1);
  Graph more(AllOps());
  const GraphBuilding building_more(more);
  for (const char* device : {"/job:ps/task:0", "/job:ps/task:1"}) {
    const DeviceScope ps(device);
    Const(1.0f);
  }
  for (int i = 0; i < 30; ++i) {
    RawMaster master(worker());
    ASSERT_TRUE(master.CreateSession(graph_).ok());
    std::jthread extender([&] { RawMaster(worker()).ExtendSession(master.session(), more); });
    std::this_thread::sleep_for(std::chrono::microseconds(i * 100));
    EXPECT_TRUE(master.CloseSession().ok());
  }
  for (const int task : {0, 1}) EXPECT_TRUE(HasNoSessions(ps(task)));
}

TEST_F(SessionEndTest, AStepThatCannotBeCompiledLeavesNoPartition) {
  StartCluster(1, 1);
  BuildVariable();
  // That there is no such text is known when the kernel is made.
  {
    const DeviceScope there("/job:worker/task:0");
    AsString(graph_.Find("v"), {.scientific = true, .shortest = true, .name = "text"});
  }
  Open(worker());
  EXPECT_THAT(session_->Run({}, {"text"}),
              IsError(StatusCode::kInvalidArgument, "Cannot select both"));
  EXPECT_TRUE(Says(ps(), ": 0 partitions"));
}

TEST_F(SessionEndTest, AStepOfANewSignatureBesideCloseSaysThatTheSessionIsClosed) {
  StartCluster(1, 1);
  BuildVariable();
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) {
    const DeviceScope there("/job:ps/task:0");
    names.push_back(Const({1.0f}).node->name());
  }
  for (int i = 0; i < 20; ++i) {
    RawMaster master(worker());
    ASSERT_TRUE(master.CreateSession(graph_).ok());
    std::jthread runner([&] {
      RawMaster other(worker());
      for (const std::string& name : names) {
        const grpc::Status status = other.RunStep(master.session(), name);
        if (status.ok()) continue;
        if (status.error_code() == grpc::StatusCode::ABORTED) {
          EXPECT_EQ(status.error_message(), StrCat("Session ", master.session(), " is not found."));
        } else {
          EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED) << status.error_message();
        }
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(i * 300));
    EXPECT_TRUE(master.CloseSession().ok());
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

TEST_F(SessionEndTest, AResetAsksAllTasksAtOnceAndIsNeverUnavailable) {
  const SilentTask silent[3];
  ServerOptions options;
  for (int i = 0; i < 3; ++i) ASSERT_OK(options.cluster.AddTask("ps", i, silent[i].address()));
  ASSERT_OK(options.cluster.AddTask("worker", 0, "127.0.0.1:1"));
  options.job = "worker";
  options.port = 0;
  const auto server = Server::Start(options, AllOps());
  ASSERT_OK(server);
  const auto begin = steady_clock::now();
  const grpc::Status status = RawMaster(**server).Reset(std::chrono::seconds(60));
  // 10 s for a task that is silent; TensorFlow's client would repeat UNAVAILABLE ten times.
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED) << status.error_message();
  EXPECT_NE(status.error_message().find(silent[0].address()), std::string::npos);
}

TEST_F(SessionEndTest, ManyEqualFetchesAreNoWork) {
  StartCluster(0, 1);
  Const(1.0f, {.name = "c"});
  Open(worker());
  const testing::CpuTime time;
  constexpr size_t kFetches = kSanitized ? 3000 : 30'000;
  const auto values = session_->Run({}, std::vector<std::string>(kFetches, "c"));
  ASSERT_OK(values);
  EXPECT_EQ(values->size(), kFetches);
  EXPECT_LT(time.seconds(), 15);
}

TEST_F(SessionEndTest, AResetByOneMasterIsSeenByTheSessionsOfOthers) {
  StartCluster(1, 2);
  BuildVariable();
  const Output ones = Const({1.0f, 1.0f});
  {
    const DeviceScope there("/job:ps/task:0");
    AssignAdd(graph_.Find("v"), ones, {.name = "add"});
  }
  Open(worker(1));
  ASSERT_OK(RunNode("init"));
  ASSERT_OK(RunNode("add"));
  ASSERT_TRUE(RawMaster(worker(0)).Reset().ok());
  // Its variable is gone: it must not train one that nobody else has.
  EXPECT_THAT(RunNode("add"),
              IsError(StatusCode::kFailedPrecondition, "Attempting to use uninitialized value v"));
  ASSERT_OK(RunNode("init"));
  EXPECT_THAT(Connect(worker(0))->Run<std::vector<float>>({}, "v"),
              Gives(std::vector<float>{1, 2}));
}

TEST_F(SessionEndTest, AnIdleSessionIsClosedAndItsWorkerSessionsToo) {
  ServerLimits limits;
  limits.session_timeout = std::chrono::seconds(3);
  StartCluster(1, 1, limits);
  BuildVariable();
  Open(worker());
  for (int i = 0; i < 10; ++i) {  // longer than the limit, but never idle for so long
    ASSERT_OK(RunNode("init"));
    std::this_thread::sleep_for(milliseconds(400));
  }
  EXPECT_TRUE(HasNoSessions(worker()));
  EXPECT_TRUE(HasNoSessions(ps()));
  EXPECT_THAT(RunNode("init"), IsError(StatusCode::kAborted, "is not found"));
}

TEST_F(SessionEndTest, AStepEndsWithTheConnectionThatAskedForIt) {
  StartCluster(0, 1);
  BuildEndlessLoop();
  ASSERT_OK(graph_.error());
  RawMaster master(worker());
  ASSERT_TRUE(master.CreateSession(graph_).ok());
  EXPECT_EQ(master.RunStep(master.session(), "result", milliseconds(300)).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Says(worker(), "idle for"));
}

TEST_F(SessionEndTest, StoppingAServerEndsTheStepsOfItsOwnProcess) {
  StartCluster(0, 1);
  BuildEndlessLoop();
  auto session = worker().MakeSession(graph_);
  ASSERT_OK(session);
  session_ = *std::move(session);
  std::jthread stop([&] {
    std::this_thread::sleep_for(milliseconds(300));
    EXPECT_OK(StopServer(worker().target(), "tenon stop"));
  });
  EXPECT_THAT(RunNode("result"), IsError(StatusCode::kCancelled, "ends: tenon stop"));
  EXPECT_THAT(RunNode("result"), IsError(StatusCode::kCancelled, "tenon stop"));
}

TEST_F(SessionEndTest, StepsThatNeverEndLeaveTimeForOthers) {
  StartCluster(0, 1);
  BuildLoop(Placeholder(DType::kInt32, {}, {.name = "limit"}));
  std::vector<std::unique_ptr<Session>> endless;
  std::vector<std::jthread> runs;
  const absl::Cleanup close = [&endless] {
    for (auto& session : endless) EXPECT_OK(session->Close());
  };
  for (int i = 0; i < 8; ++i) {  // the server has two threads
    endless.push_back(Connect(worker()));
    // What its kernels took in this run, none, says nothing of the next.
    ASSERT_OK(endless.back()->Run({{"limit", 0}}, {"result"}));
    runs.emplace_back([&session = *endless.back()] {
      EXPECT_THAT(session.Run({{"limit", 1}}, {"result"}), IsError(StatusCode::kCancelled, ""));
    });
  }
  std::this_thread::sleep_for(milliseconds(300));
  Graph other(AllOps());
  const GraphBuilding building_other(other);
  Mul(Const({2.0f, 3.0f}), 5.0f, {.name = "product"});
  auto session = MakeRemoteSession(worker().target(), other);
  ASSERT_OK(session);
  const testing::CpuTime time;
  for (int i = 0; i < 10; ++i) {
    const auto product = (*session)->Run({}, {"product"});
    ASSERT_OK(product);
    EXPECT_EQ((*product)[0].flat<float>()[1], 15);
  }
  // Each run waits a few times, for the turns of four steps. Both threads work all the time.
  EXPECT_LT(time.seconds(), kSanitized ? 120 : 20);
}

TEST_F(SessionEndTest, ShutdownWaitsThoughAnotherThreadShutsDownToo) {
  StartCluster(0, 1);
  BuildEndlessLoop();
  Open(worker());
  std::jthread run([&] { EXPECT_FALSE(RunNode("result").ok()); });
  std::this_thread::sleep_for(milliseconds(200));
  std::jthread other([&] { worker().Shutdown(); });
  worker().Shutdown();
  testing::RawSocket late(worker().port());
  EXPECT_FALSE(late.connected());
}

}  // namespace
}  // namespace tenon
