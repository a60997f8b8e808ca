// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>

#include "ops/array/array_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "runtime/device/machine.h"
#include "tests/testing/status_matchers.h"
#include "train/sessions/hooks.h"
#include "train/sessions/monitored_training_session.h"
#include "train/variables.h"

namespace tenon {
namespace {

/// The machine's threads, counted.
class CountedThreads final : public ThreadStarter {
 public:
  std::unique_ptr<Work> Start(std::function<void()> work) override {
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

}  // namespace
}  // namespace tenon
