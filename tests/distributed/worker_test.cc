// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "ops/register.h"
#include "runtime/device/machine_clock.h"
#include "tests/testing/cpu_devices.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::IsError;

constexpr char kTask[] = "/job:worker/replica:0/task:0";

/// A cluster of nobody else.
class NoWorkers final : public WorkerDirectory {
 public:
  StatusOr<std::shared_ptr<WorkerInterface>> Get(const std::string& task) override {
    return NotFound(task);
  }
  std::string Address(const std::string&) const override { return "nowhere"; }
};

/// A worker with one device, called as a peer would.
class WorkerTest : public ::testing::Test {
 protected:
  WorkerTest() : devices_(testing::MakeCpuDevices(kTask, 1, "worker")) {
    WorkerEnvironment environment{kTask,       {devices_[0].get()}, &AllOps(), &pool_,
                                  &directory_, &MachineClock(),     {},        nullptr};
    environment.limits.sessions = 3;
    environment.limits.graph_nodes = 10;
    environment.limits.session_timeout = std::chrono::seconds(1);
    environment.run_blocking = [this](const std::function<void()>& work) {
      ++blocking_calls_;
      work();
      return OkStatus();
    };
    worker_ = std::make_unique<Worker>(environment);
  }
  ~WorkerTest() override { worker_->Shutdown(); }

  uint64_t incarnation() const { return devices_[0]->incarnation(); }

  Status OpenSession(const std::string& handle, const std::string& master, uint64_t incarnation) {
    CreateWorkerSessionRequest request;
    request.set_session_handle(handle);
    request.set_master_task(master);
    request.set_master_incarnation(static_cast<int64_t>(incarnation));
    CreateWorkerSessionResponse response;
    Status result = Internal("not called");
    worker_->CreateWorkerSessionAsync(request, &response, [&](Status s) { result = s; });
    return result;
  }
  /// Registers a graph whose one node waits for a tensor that never comes.
  std::string RegisterWaitingGraph(const std::string& session) {
    RegisterGraphRequest request;
    request.set_session_handle(session);
    NodeDef* node = request.mutable_graph_def()->add_node();
    node->set_name("wait");
    node->set_op("_Recv");
    node->set_device(devices_[0]->name());
    auto& attr = *node->mutable_attr();
    attr["tensor_type"].set_type(DT_FLOAT);
    attr["tensor_name"].set_s("never");
    attr["send_device"].set_s(devices_[0]->name());
    attr["recv_device"].set_s(devices_[0]->name());
    attr["send_device_incarnation"].set_i(static_cast<int64_t>(incarnation()));
    RegisterGraphResponse response;
    worker_->RegisterGraphAsync(request, &response, [](const Status& s) { EXPECT_OK(s); });
    return response.graph_handle();
  }
  void CleanUp(int64_t step) {
    CleanupGraphRequest request;
    request.set_step_id(step);
    CleanupGraphResponse response;
    worker_->CleanupGraphAsync(request, &response, [](const Status& s) { EXPECT_OK(s); });
  }
  cluster::ServerStatusResponse Describe() {
    cluster::ServerStatusResponse status;
    worker_->Describe(&status);
    return status;
  }
  RecvTensorCall Receive(int64_t step) const {
    const std::string& device = devices_[0]->name();
    return {step, RendezvousKey{device, incarnation(), device, "x", 0, 0}.ToString()};
  }

  ThreadPool pool_{2};
  NoWorkers directory_;
  const std::vector<std::unique_ptr<Device>> devices_;
  int blocking_calls_ = 0;
  std::unique_ptr<Worker> worker_;
  Status ended_;  // of the call in the background
  std::atomic<bool> over_ = false;
  WorkerInterface::Done End() {
    return [this](Status s) {
      ended_ = std::move(s);
      over_ = true;
    };
  }
  void WaitForEnd() {
    while (!over_) std::this_thread::yield();
  }
};

TEST_F(WorkerTest, AReceiveFromADeviceThatTheTaskLacksIsRefused) {
  const std::string device = std::string(kTask) + "/device:GPU:3";
  RecvTensorCall call{1, RendezvousKey{device, 1, device, "x", 0, 0}.ToString()};
  worker_->RecvTensorAsync(&call, nullptr, End());
  WaitForEnd();
  EXPECT_THAT(ended_, IsError(StatusCode::kInvalidArgument, "has no device"));
  EXPECT_EQ(Describe().num_steps(), 0);
}

TEST_F(WorkerTest, AStrangerWhoSaysThatHeIsThisTaskEndsNoSession) {
  ASSERT_OK(OpenSession("mine", kTask, incarnation()));
  EXPECT_THAT(OpenSession("his", kTask, incarnation() + 1),
              IsError(StatusCode::kPermissionDenied, "says that it is"));
  EXPECT_EQ(Describe().worker_sessions_size(), 1);
}

TEST_F(WorkerTest, AMasterThatRestartsEndsTheStepsOfItsOldSessions) {
  ASSERT_OK(OpenSession("old", "/job:worker/replica:0/task:1", 1));
  RunGraphCall run;
  run.session_handle = "old";
  run.graph_handle = RegisterWaitingGraph("old");
  run.step_id = 7;
  worker_->RunGraphAsync(&run, nullptr, End());
  EXPECT_EQ(Describe().num_steps(), 1);
  ASSERT_OK(OpenSession("new", "/job:worker/replica:0/task:1", 2));
  WaitForEnd();
  EXPECT_THAT(ended_, IsError(StatusCode::kAborted, "has been deleted"));
  EXPECT_EQ(Describe().num_steps(), 0);
}

TEST_F(WorkerTest, ACallThatComesAfterTheCleanUpIsRefusedAndLeavesNoStep) {
  ASSERT_OK(OpenSession("s", "", 0));
  CleanUp(7);
  RecvTensorCall receive = Receive(7);
  worker_->RecvTensorAsync(&receive, nullptr, End());
  WaitForEnd();
  EXPECT_THAT(ended_, IsError(StatusCode::kAborted, "step 7 has been cleaned up"));
  over_ = false;
  RunGraphCall run;
  run.session_handle = "s";
  run.graph_handle = RegisterWaitingGraph("s");
  run.step_id = 7;
  worker_->RunGraphAsync(&run, nullptr, End());
  WaitForEnd();
  EXPECT_THAT(ended_, IsError(StatusCode::kAborted, "step 7 has been cleaned up"));
  EXPECT_EQ(Describe().num_steps(), 0);
}

TEST_F(WorkerTest, AReceiveThatIsGivenUpBeforeItsStepBeginsLeavesNothing) {
  Cancellation cancellation;
  RecvTensorCall receive = Receive(7);
  worker_->RecvTensorAsync(&receive, &cancellation, End());
  cluster::ServerStatusResponse status = Describe();
  EXPECT_EQ(status.num_receives(), 1);
  ASSERT_EQ(status.steps_size(), 1);
  ASSERT_EQ(status.steps(0).waits_size(), 1);
  EXPECT_THAT(status.steps(0).waits(0), HasSubstr("waits for x, not made yet at"));
  cancellation.Cancel(Cancelled("test"));
  WaitForEnd();
  status = Describe();
  EXPECT_EQ(status.num_receives(), 0);
  EXPECT_EQ(status.num_steps(), 0);
}

TEST_F(WorkerTest, GraphsWithEverNewStatesAreRefusedInTheEnd) {
  ASSERT_OK(OpenSession("s", "/job:master/replica:0/task:0", 1));
  const auto register_variable = [this](const std::string& name) {
    RegisterGraphRequest request;
    request.set_session_handle("s");
    NodeDef* node = request.mutable_graph_def()->add_node();
    node->set_name(name);
    node->set_op("VariableV2");
    node->set_device(devices_[0]->name());
    (*node->mutable_attr())["dtype"].set_type(DT_FLOAT);
    (*node->mutable_attr())["shape"].mutable_shape();
    RegisterGraphResponse response;
    Status result = Internal("not called");
    worker_->RegisterGraphAsync(request, &response, [&](Status s) { result = s; });
    if (!result.ok()) return result;
    DeregisterGraphRequest deregister;
    deregister.set_session_handle("s");
    deregister.set_graph_handle(response.graph_handle());
    DeregisterGraphResponse gone;
    worker_->DeregisterGraphAsync(deregister, &gone, [&](Status s) { result = s; });
    return result;
  };
  for (int i = 0; i < 10; ++i) EXPECT_OK(register_variable(StrCat("v", i)));
  EXPECT_THAT(register_variable("v10"),
              IsError(StatusCode::kResourceExhausted, "has 10 nodes with a state"));
  EXPECT_OK(register_variable("v3"));
}

TEST_F(WorkerTest, SessionsAreCountedAndForgottenWhenNobodyUsesThem) {
  for (const char* handle : {"a", "b", "c"}) ASSERT_OK(OpenSession(handle, "", 0));
  ASSERT_OK(OpenSession("a", "", 0));  // it is there already
  EXPECT_THAT(OpenSession("d", "", 0), IsError(StatusCode::kResourceExhausted, "3 sessions"));
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  ASSERT_OK(OpenSession("a", "", 0));
  worker_->Sweep();
  EXPECT_EQ(Describe().worker_sessions_size(), 1);
  EXPECT_OK(OpenSession("d", "", 0));
}

TEST_F(WorkerTest, ARequestThatComesTwiceRunsOnce) {
  ASSERT_OK(OpenSession("s", "", 0));
  RunGraphCall run;
  run.session_handle = "s";
  run.graph_handle = RegisterWaitingGraph("s");
  run.step_id = 7;
  run.request_id = 99;
  worker_->RunGraphAsync(&run, nullptr, End());
  RunGraphCall again = run;
  Status status;
  worker_->RunGraphAsync(&again, nullptr, [&](Status s) { status = std::move(s); });
  EXPECT_THAT(status, IsError(StatusCode::kAborted, "same RunGraph (Worker) request"));
  Cancellation cancellation;
  RecvTensorCall receive = Receive(7), twice = Receive(7);
  receive.request_id = twice.request_id = 99;  // ids of other calls do not count
  worker_->RecvTensorAsync(&receive, &cancellation, [](const Status&) {});
  worker_->RecvTensorAsync(&twice, nullptr, [&](Status s) { status = std::move(s); });
  EXPECT_THAT(status, IsError(StatusCode::kAborted, "same RecvTensor (GrpcWorker) request"));
  CleanUp(7);
  WaitForEnd();
}

TEST_F(WorkerTest, ARunInPartsEndsWhenItsStepIsCleanedUp) {
  ASSERT_OK(OpenSession("s", "", 0));
  RunGraphCall first;
  first.session_handle = "s";
  first.graph_handle = RegisterWaitingGraph("s");
  first.step_id = 7;
  first.is_partial = true;
  worker_->RunGraphAsync(&first, nullptr, End());
  WaitForEnd();
  EXPECT_OK(ended_);  // it wanted nothing
  RunGraphCall last = first;
  last.is_last_partial_run = true;
  over_ = false;
  worker_->RunGraphAsync(&last, nullptr, End());
  EXPECT_FALSE(over_);
  CleanUp(7);
  WaitForEnd();
  EXPECT_THAT(ended_, IsError(StatusCode::kAborted, "step 7 has been cleaned up"));
  EXPECT_EQ(Describe().num_steps(), 0);
}

TEST_F(WorkerTest, AnIsolatedSessionHasResourcesOfItsOwn) {
  int64_t step = 0;
  for (const char* handle : {"shared", "own", "other"}) {
    CreateWorkerSessionRequest request;
    request.set_session_handle(handle);
    request.set_isolate_session_state(handle != std::string("shared"));
    CreateWorkerSessionResponse response;
    worker_->CreateWorkerSessionAsync(request, &response, [](const Status& s) { EXPECT_OK(s); });
    RegisterGraphRequest graph;
    graph.set_session_handle(handle);
    NodeDef* node = graph.mutable_graph_def()->add_node();
    node->set_name("v");
    node->set_op("VariableV2");
    node->set_device(devices_[0]->name());
    (*node->mutable_attr())["dtype"].set_type(DT_FLOAT);
    (*node->mutable_attr())["shape"].mutable_shape();
    RegisterGraphResponse registered;
    worker_->RegisterGraphAsync(graph, &registered, [](const Status& s) { EXPECT_OK(s); });
    RunGraphCall run;
    run.session_handle = handle;
    run.graph_handle = registered.graph_handle();
    run.step_id = ++step;
    over_ = false;
    worker_->RunGraphAsync(&run, nullptr, End());
    WaitForEnd();
    EXPECT_OK(ended_);
  }
  const auto usages = devices_[0]->resources().Usages();
  ASSERT_EQ(usages.size(), 1u);
  EXPECT_EQ(usages[0].resources, 1);
  // Its end may wait for iterators, and the thread that brings the call must not.
  for (const char* handle : {"shared", "own"}) {
    DeleteWorkerSessionRequest request;
    request.set_session_handle(handle);
    DeleteWorkerSessionResponse response;
    worker_->DeleteWorkerSessionAsync(request, &response, [](const Status& s) { EXPECT_OK(s); });
    EXPECT_EQ(blocking_calls_, handle == std::string("own") ? 1 : 0) << handle;
  }
}

TEST_F(WorkerTest, ASessionWithAClusterOfItsOwnNeedsAWayToIt) {
  CreateWorkerSessionRequest request;
  request.set_session_handle("s");
  request.mutable_server_def()->set_job_name("other");
  JobDef* const job = request.mutable_server_def()->mutable_cluster()->add_job();
  job->set_name("other");
  (*job->mutable_tasks())[0] = "127.0.0.1:1";
  CreateWorkerSessionResponse response;
  worker_->CreateWorkerSessionAsync(request, &response, End());
  EXPECT_THAT(ended_, IsError(StatusCode::kUnimplemented, "takes no session with a cluster"));
  request.mutable_server_def()->set_task_index(3);
  worker_->CreateWorkerSessionAsync(request, &response, End());
  EXPECT_THAT(ended_, IsError(StatusCode::kNotFound, "task:3 is not in the cluster"));
}

TEST(TransferLogTest, ReceivesAreKeptWhileSomebodyWantsThem) {
  TransferLog log;
  LoggingRequest enable, disable, fetch;
  enable.set_enable_rpc_logging(true);
  disable.set_disable_rpc_logging(true);
  fetch.add_fetch_step_id(7);
  LoggingResponse none;
  EXPECT_FALSE(log.active());
  log.Answer(enable, &none);
  log.Answer(enable, &none);
  log.Answer(disable, &none);
  EXPECT_TRUE(log.active());  // for the other master
  const std::string key = RendezvousKey{"/job:ps/replica:0/task:0/device:CPU:0",
                                        1,
                                        "/job:worker/replica:0/task:0/device:CPU:0",
                                        "x",
                                        0,
                                        0}
                              .ToString();
  log.Add(7, key, 1000'000, 3000'000, 16);
  LoggingResponse response;
  log.Answer(fetch, &response);
  ASSERT_EQ(response.step_size(), 1);
  ASSERT_EQ(response.step(0).step_stats().dev_stats_size(), 1);
  const NodeExecStats& stats = response.step(0).step_stats().dev_stats(0).node_stats(0);
  EXPECT_EQ(stats.node_name(), "RecvTensor");
  EXPECT_EQ(stats.op_end_rel_micros(), 2000);
  EXPECT_THAT(stats.timeline_label(), HasSubstr("x from /job:ps"));
  LoggingResponse again;
  log.Answer(fetch, &again);
  EXPECT_EQ(again.step_size(), 0);
  log.Answer(disable, &none);
  EXPECT_FALSE(log.active());
}

}  // namespace
}  // namespace tenon
