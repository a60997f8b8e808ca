// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <utility>

#include "data/files/file.h"
#include "ops/array/array_ops.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "runtime/device/machine.h"
#include "runtime/session/local_session.h"
#include "tests/testing/status_matchers.h"
#include "train/optimizers/gradient_descent.h"
#include "train/sessions/hooks.h"
#include "train/sessions/monitored_training_session.h"
#include "train/supervisor.h"
#include "train/sync/sync_replicas.h"
#include "train/variables.h"

namespace tenon {
namespace {

/// The machine's threads, counted.
class CountedThreads final : public ThreadStarter {
 public:
  StatusOr<std::unique_ptr<Work>> Start(std::function<void()> work) override {
    ++started;
    return MachineThreads().Start([this, work = std::move(work)] {
      work();
      ++ended;
    });
  }
  std::atomic<int> started{0}, ended{0};
};

TEST(TrainingThreadsTest, WhatRunsBesideTheStepsIsStartedByTheTrainingsStarterAndEndsWithIt) {
  CountedThreads threads;
  {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    Node* const train = AssignAdd(GlobalStep().ref(), 1).node;
    auto session = MonitoredTrainingSession::Start({.hooks = {StopAtStep(1)}, .threads = &threads});
    ASSERT_OK(session.status());
    EXPECT_EQ(threads.started, 1);  // it watches for signals
    EXPECT_EQ(threads.ended, 0);
    ASSERT_OK((*session)->Run({}, {}, {train}).status());
    ASSERT_OK((*session)->Close());
  }
  EXPECT_EQ(threads.ended, 1);
}

/// A system that gives no thread.
class NoThreads final : public ThreadStarter {
 public:
  StatusOr<std::unique_ptr<Work>> Start(std::function<void()>) override {
    return ResourceExhausted("no threads");
  }
};

TEST(TrainingThreadsTest, WithoutAThreadToWatchForSignalsTrainingGoesOnAndSaysSo) {
  NoThreads threads;
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  Node* const train = AssignAdd(GlobalStep().ref(), 1).node;
  std::string said;
  auto session =
      MonitoredTrainingSession::Start({.hooks = {StopAtStep(1)},
                                       .notice = [&](const std::string& line) { said += line; },
                                       .threads = &threads});
  ASSERT_OK(session.status());
  EXPECT_THAT(said, ::testing::HasSubstr("nobody watches"));
  EXPECT_THAT(said, ::testing::HasSubstr("no threads"));
  ASSERT_OK((*session)->Run({}, {}, {train}).status());
  ASSERT_OK((*session)->Close());
}

TEST(TrainingThreadsTest, WithoutAThreadTrainingInStepDoesNotBegin) {
  NoThreads threads;
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Variable w("w", 1.0f);
  GradientDescent descent(0.1);
  SyncReplicas sync(descent, {.total_num_replicas = 1});
  sync.Minimize(Square(w.value()), {.global_step = GlobalStep()});
  const auto session =
      MonitoredTrainingSession::Start({.hooks = {sync.MakeHook()}, .threads = &threads});
  EXPECT_THAT(session.status(), testing::IsError(StatusCode::kResourceExhausted, "no threads"));
}

/// A system that gives a thread when it is asked again.
class ThreadsLater final : public ThreadStarter {
 public:
  StatusOr<std::unique_ptr<Work>> Start(std::function<void()> work) override {
    if (!std::exchange(asked_, true)) return ResourceExhausted("no threads");
    return MachineThreads().Start(std::move(work));
  }

 private:
  bool asked_ = false;
};

TEST(TrainingThreadsTest, ASupervisorThatGotNoThreadToSaveWithAsksAgain) {
  ThreadsLater threads;
  const std::string folder = ::testing::TempDir() + TemporaryName("supervised");
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  GlobalStep();
  Saver saver;
  Supervisor supervisor({.checkpoint_dir = folder, .saver = &saver, .threads = &threads});
  const auto open = [&] { return MakeLocalSession(graph); };
  EXPECT_THAT(supervisor.PrepareOrWaitForSession(open).status(),
              testing::IsError(StatusCode::kResourceExhausted, "no threads"));
  ASSERT_OK(supervisor.PrepareOrWaitForSession(open).status());
  ASSERT_OK(supervisor.Stop());
  EXPECT_OK(LatestCheckpoint(folder).status());
  ASSERT_OK(RemoveTree(folder));
}

}  // namespace
}  // namespace tenon
