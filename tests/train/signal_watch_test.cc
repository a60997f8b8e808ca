// SPDX-License-Identifier: Apache-2.0
#include "train/sessions/signal_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <thread>

#include "data/files/file.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/operators.h"
#include "ops/queues/queues_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"
#include "train/sessions/monitored_training_session.h"
#include "train/variables.h"

namespace tenon {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// A folder that goes with the test.
struct TestFolder {
  TestFolder() : path(::testing::TempDir() + TemporaryName("signal")) {}
  ~TestFolder() { std::filesystem::remove_all(path); }
  const std::string path;
};

TEST(SignalWatchTest, AStepOfAClusterThatDoesNotEndAfterASignalIsGivenUpAndTheRestSaved) {
  const TestFolder folder;
  testing::TestCluster cluster(1, 1);
  cluster.StartAll();
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const DeviceScope on_ps("/job:ps/task:0");
  Node* const train = AssignAdd(GlobalStep().ref(), 1).node;
  const Output queue = FIFOQueue(DTypeVector{DType::kFloat}, {.shared_name = "never_filled"});
  const Output blocked = QueueDequeue(queue, {DType::kFloat})[0];
  Mutex mu;
  std::vector<std::string> lines;
  auto session =
      MonitoredTrainingSession::Start({.server = &cluster.at("worker", 0),
                                       .checkpoint_dir = folder.path,
                                       .interrupted_step_limit = std::chrono::milliseconds(1000),
                                       .notice = [&](const std::string& line) {
                                         MutexLock lock(mu);
                                         lines.push_back(line);
                                       }});
  ASSERT_OK(session.status());
  for (int i = 0; i < 3; ++i) ASSERT_OK((*session)->Run({}, {}, {train}).status());
  std::jthread signal([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::raise(SIGTERM);
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT((*session)->Run({}, {blocked}),
              testing::IsError(
                  StatusCode::kCancelled,
                  "ended by SIGTERM: the step did not end within 1 s and was given up; what was "
                  "trained until step 3 is saved"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(*LatestCheckpoint(folder.path), folder.path + "/model.ckpt-3");
  EXPECT_TRUE((*session)->ShouldStop());
  EXPECT_OK((*session)->Close());
  MutexLock lock(mu);
  EXPECT_THAT(lines, Contains(HasSubstr("SIGTERM: waiting for the step that runs, 1 s at most")));
}

TEST(SignalWatchTest, ALoopThatDoesNotAskWhetherToStopIsEnded) {
  const TestFolder folder;
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  Node* const train = AssignAdd(GlobalStep().ref(), 1).node;
  auto session = MonitoredTrainingSession::Start(
      {.checkpoint_dir = folder.path, .interrupted_step_limit = std::chrono::milliseconds(500)});
  ASSERT_OK(session.status());
  ASSERT_OK((*session)->Run({}, {}, {train}).status());
  std::raise(SIGTERM);
  int64_t steps = 1;
  Status status;
  while (status.ok()) {
    status = (*session)->Run({}, {}, {train}).status();
    steps += status.ok();
  }
  EXPECT_GT(steps, 1);
  EXPECT_THAT(status, testing::IsError(StatusCode::kCancelled,
                                       StrCat("ended by SIGTERM: steps went on for 0.5 s and "
                                              "ShouldStop was not asked; what was trained until ",
                                              "step ", steps, " is saved")));
  EXPECT_EQ(*LatestCheckpoint(folder.path), StrCat(folder.path, "/model.ckpt-", steps));
  EXPECT_OK((*session)->Close());
}

/// Takes its time after each step.
class SlowHook final : public SessionHook {
 public:
  Status AfterRun(const RunContext&, const RunValues&) override {
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    return OkStatus();
  }
  std::atomic<bool> begun{false};
};

TEST(SignalWatchTest, WhatAHookDoesAfterTheStepIsNotGivenUp) {
  const TestFolder folder;
  testing::TestCluster cluster(1, 1);
  cluster.StartAll();
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const DeviceScope on_ps("/job:ps/task:0");
  Node* const train = AssignAdd(GlobalStep().ref(), 1).node;
  const auto slow = std::make_shared<SlowHook>();
  Mutex mu;
  std::vector<std::string> lines;
  auto session =
      MonitoredTrainingSession::Start({.server = &cluster.at("worker", 0),
                                       .checkpoint_dir = folder.path,
                                       .hooks = {slow},
                                       .interrupted_step_limit = std::chrono::milliseconds(400),
                                       .notice = [&](const std::string& line) {
                                         MutexLock lock(mu);
                                         lines.push_back(line);
                                       }});
  ASSERT_OK(session.status());
  std::jthread signal([&slow] {
    while (!slow->begun) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::raise(SIGTERM);
  });
  EXPECT_OK((*session)->Run({}, {}, {train}).status());
  EXPECT_TRUE((*session)->ShouldStop());
  EXPECT_OK((*session)->Close());
  EXPECT_EQ(*LatestCheckpoint(folder.path), folder.path + "/model.ckpt-1");
  MutexLock lock(mu);
  EXPECT_THAT(lines, Contains(HasSubstr("waiting for the hooks after the step, 0.4 s, and for "
                                        "longer while all tasks answer")));
}

/// Keeps the session that is open.
class SessionKeeper final : public SessionHook {
 public:
  Status AfterCreateSession(const RunContext& context, int64_t) override {
    session = &context.session();
    return OkStatus();
  }
  Session* session = nullptr;
};

TEST(SignalWatchTest, AStepOfOneProcessIsWaitedForAndThatIsSaid) {
  const TestFolder folder;
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  Node* const train = AssignAdd(GlobalStep().ref(), 1).node;
  const Output queue = FIFOQueue(DTypeVector{DType::kFloat}, {.shared_name = "filled_late"});
  const Output taken = QueueDequeue(queue, {DType::kFloat})[0];
  Node* const fill = QueueEnqueue(queue, {::tenon::Const(Tensor::Scalar(1.0f))});
  const auto keeper = std::make_shared<SessionKeeper>();
  Mutex mu;
  int said = 0;
  const auto notice = [&](const std::string& line) {
    if (line != "SIGTERM: waiting for the step that runs; a second signal ends at once") return;
    MutexLock lock(mu);
    // The step, which is not given up, gets what it waits for.
    if (++said == 3) EXPECT_OK(keeper->session->Run({}, {}, {fill->name()}).status());
  };
  auto session =
      MonitoredTrainingSession::Start({.checkpoint_dir = folder.path,
                                       .hooks = {keeper},
                                       .interrupted_step_limit = std::chrono::milliseconds(500),
                                       .notice = notice});
  ASSERT_OK(session.status());
  ASSERT_OK((*session)->Run({}, {}, {train}).status());
  std::jthread signal([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::raise(SIGTERM);
  });
  const auto values = (*session)->Run({}, {taken}, {train});
  ASSERT_OK(values.status());
  EXPECT_EQ((*values)[0].scalar<float>(), 1);
  EXPECT_TRUE((*session)->ShouldStop());
  EXPECT_OK((*session)->Close());
  EXPECT_EQ(*LatestCheckpoint(folder.path), folder.path + "/model.ckpt-2");
  MutexLock lock(mu);
  EXPECT_GE(said, 3);
}

}  // namespace
}  // namespace tenon
