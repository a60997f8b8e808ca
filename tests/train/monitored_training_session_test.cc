// SPDX-License-Identifier: Apache-2.0
#include "train/sessions/monitored_training_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <limits>

#include "data/files/file.h"
#include "data/records/event_file.h"
#include "ops/array/array_ops.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "ops/summary/summary_ops.h"
#include "proto/event.pb.h"
#include "tests/testing/simulated_clock.h"
#include "tests/testing/status_matchers.h"
#include "train/sessions/hooks.h"
#include "train/variables.h"

namespace tenon {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A folder that goes with the test.
struct TestFolder {
  TestFolder() : path(::testing::TempDir() + TemporaryName("monitored")) {}
  ~TestFolder() { std::filesystem::remove_all(path); }
  const std::string path;
};

/// Counts, and adds 0.5 to w each step.
struct CountingGraph {
  Graph graph{AllOps()};
  GraphBuilding building{graph};
  Variable w{"w", 1.0f};
  Output x = Placeholder(DType::kFloat, Shape(), {.name = "x"});
  Output loss = w.value() * x;
  Node* train = [this] {
    const ControlDependencies after({AssignAdd(w.ref(), 0.5f)});
    return AssignAdd(GlobalStep().ref(), 1).node;
  }();
};

TEST(MonitoredTrainingSessionTest, StopsAtTheStepAndGoesOnFromTheCheckpoint) {
  const TestFolder folder;
  for (const int64_t last : {7, 12}) {
    CountingGraph g;
    auto session = MonitoredTrainingSession::Start(
        {.checkpoint_dir = folder.path, .save_checkpoint_steps = 5, .hooks = {StopAtStep(last)}});
    ASSERT_OK(session.status());
    EXPECT_EQ((*session)->global_step(), last == 7 ? 0 : 7);
    int64_t steps = 0;
    for (; !(*session)->ShouldStop(); ++steps) {
      ASSERT_OK((*session)->Run({{g.x, 1.0f}}, {}, {g.train}).status());
    }
    EXPECT_EQ(steps, last == 7 ? 7 : 5);
    EXPECT_EQ(*(*session)->RunWithoutHooks<float>({}, g.w), 1 + 0.5f * static_cast<float>(last));
    ASSERT_OK((*session)->Close());
    EXPECT_EQ(*LatestCheckpoint(folder.path), StrCat(folder.path, "/model.ckpt-", last));
  }
  EXPECT_THAT(GetCheckpointState(folder.path)->all,
              ElementsAre(folder.path + "/model.ckpt-0", folder.path + "/model.ckpt-5",
                          folder.path + "/model.ckpt-7", folder.path + "/model.ckpt-12"));
}

TEST(MonitoredTrainingSessionTest, WhatIsDamagedNamesTheCheckpointThatIsWhole) {
  const TestFolder folder;
  const auto train = [&](int64_t last) -> Status {
    CountingGraph g;
    TENON_ASSIGN_OR_RETURN(const auto session,
                           MonitoredTrainingSession::Start(
                               {.checkpoint_dir = folder.path, .hooks = {StopAtStep(last)}}));
    while (!session->ShouldStop()) {
      TENON_RETURN_IF_ERROR(session->Run({{g.x, 1.0f}}, {}, {g.train}).status());
    }
    return session->Close();
  };
  for (const int64_t last : {3, 10, 20}) ASSERT_OK(train(last));
  const std::string prefix = folder.path + "/model.ckpt-", state = folder.path + "/checkpoint";
  std::filesystem::resize_file(prefix + "20.data-00000-of-00001", 2);
  EXPECT_THAT(train(30),
              testing::IsError(
                  StatusCode::kDataLoss,
                  StrCat("the latest checkpoint is damaged; '", prefix,
                         "10' is whole, and training goes on from it when '", state,
                         "' names it as model_checkpoint_path: cannot restore '", prefix, "20'")));
  ASSERT_OK(WriteStringToFile(state, "nonsense"));
  EXPECT_THAT(
      train(30),
      testing::IsError(StatusCode::kDataLoss,
                       StrCat("'", state, "' is not the state of a directory of checkpoints; '",
                              prefix, "10' is whole, and training goes on from it when the file ",
                              "has the line model_checkpoint_path: \"model.ckpt-10\"")));
  // As it says.
  ASSERT_OK(WriteStringToFile(state, "model_checkpoint_path: \"model.ckpt-10\"\n"));
  ASSERT_OK(train(30));
  EXPECT_EQ(*LatestCheckpoint(folder.path), prefix + "30");
}

TEST(MonitoredTrainingSessionTest, AStepAfterTheLastOneIsNotRun) {
  const TestFolder folder;
  std::vector<std::string> lines;
  for (int i = 0; i < 2; ++i) {
    CountingGraph g;
    auto session = MonitoredTrainingSession::Start(
        {.checkpoint_dir = folder.path,
         .hooks = {StopAtStep(3)},
         .notice = [&](const std::string& line) { lines.push_back(line); }});
    ASSERT_OK(session.status());
    EXPECT_EQ((*session)->ShouldStop(), i == 1);
    while (!(*session)->ShouldStop()) {
      ASSERT_OK((*session)->Run({{g.x, 1.0f}}, {}, {g.train}).status());
    }
    ASSERT_OK((*session)->Close());
  }
  EXPECT_EQ(*LatestCheckpoint(folder.path), folder.path + "/model.ckpt-3");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "training had ended already, at step 3"), 1);
}

TEST(MonitoredTrainingSessionTest, ANaNEndsTraining) {
  CountingGraph g;
  auto session = MonitoredTrainingSession::Start({.hooks = {NanTensorHook(g.loss)}});
  ASSERT_OK(session.status());
  ASSERT_OK((*session)->Run({{g.x, 1.0f}}, {}, {g.train}).status());
  const auto run = (*session)->Run({{g.x, std::numeric_limits<float>::quiet_NaN()}}, {}, {g.train});
  EXPECT_EQ(run.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(run.status().message()),
              HasSubstr("training has diverged: 'Mul' is nan"));
}

TEST(MonitoredTrainingSessionTest, ANaNMayEndTrainingInGoodOrder) {
  CountingGraph g;
  auto session = MonitoredTrainingSession::Start({.hooks = {NanTensorHook(g.loss, OnNan::kStop)}});
  ASSERT_OK(session.status());
  ASSERT_OK((*session)->Run({{g.x, 1.0f}}, {}, {g.train}).status());
  EXPECT_FALSE((*session)->ShouldStop());
  ASSERT_OK(
      (*session)->Run({{g.x, std::numeric_limits<float>::infinity()}}, {}, {g.train}).status());
  EXPECT_TRUE((*session)->ShouldStop());
}

TEST(MonitoredTrainingSessionTest, HooksLogCountAndRecordSteps) {
  const TestFolder folder;
  CountingGraph g;
  std::vector<std::string> lines;
  const auto notice = [&](const std::string& line) { lines.push_back(line); };
  auto session = MonitoredTrainingSession::Start(
      {.hooks = {StopAfterSteps(4), ProfilerHook(folder.path, 3),
                 LoggingTensorHook({{"loss", g.loss}}, 3, notice)}});
  ASSERT_OK(session.status());
  int steps = 0;
  for (; !(*session)->ShouldStop(); ++steps) {
    ASSERT_OK((*session)->Run({{g.x, 2.0f}}, {}, {g.train}).status());
  }
  EXPECT_EQ(steps, 4);
  ASSERT_EQ(lines.size(), 2);
  EXPECT_THAT(lines[1], HasSubstr("loss = "));
  const auto names = ListFolder(folder.path);
  ASSERT_OK(names.status());
  ASSERT_EQ(names->size(), 1);
  EXPECT_THAT(*ReadFileToString(JoinPath(folder.path, (*names)[0])), HasSubstr("AssignAdd"));
}

TEST(MonitoredTrainingSessionTest, ASignalEndsTrainingWithACheckpoint) {
  const TestFolder folder;
  CountingGraph g;
  auto session = MonitoredTrainingSession::Start({.checkpoint_dir = folder.path});
  ASSERT_OK(session.status());
  int steps = 0;
  for (; !(*session)->ShouldStop() && steps < 100; ++steps) {
    ASSERT_OK((*session)->Run({{g.x, 1.0f}}, {}, {g.train}).status());
    // Twice, as a terminal and a launcher may both send it.
    for (int i = 0; i < 2 && steps == 3; ++i) std::raise(SIGINT);
  }
  EXPECT_EQ(steps, 4);
  ASSERT_OK((*session)->Close());
  EXPECT_EQ(*LatestCheckpoint(folder.path), folder.path + "/model.ckpt-4");
}

TEST(MonitoredTrainingSessionTest, AStepAfterTheEndIsAMistake) {
  const TestFolder folder;
  CountingGraph g;
  std::vector<std::string> lines;
  {
    auto session = MonitoredTrainingSession::Start(
        {.checkpoint_dir = folder.path,
         .hooks = {StopAtStep(2)},
         .notice = [&](const std::string& line) { lines.push_back(line); }});
    ASSERT_OK(session.status());
    for (int i = 0; i < 2; ++i) ASSERT_OK((*session)->Run({{g.x, 1.0f}}, {}, {g.train}).status());
    EXPECT_THAT((*session)->Run({{g.x, 1.0f}}, {}, {g.train}),
                testing::IsError(StatusCode::kFailedPrecondition,
                                 "Run called even after should_stop requested: training ended at "
                                 "step 2; ask ShouldStop before each step"));
    // An evaluation is none.
    EXPECT_OK((*session)->RunWithoutHooks({{g.x, 1.0f}}, {g.loss}).status());
  }
  EXPECT_THAT(lines, Contains(HasSubstr("the session goes without Close()")));
}

TEST(MonitoredTrainingSessionTest, TwoTrainingsInOneFolderAreSaid) {
  const TestFolder folder;
  std::vector<std::string> lines;
  const auto train = [&](int steps) {
    CountingGraph g;
    auto session = MonitoredTrainingSession::Start(
        {.checkpoint_dir = folder.path,
         .save_checkpoint_steps = 1,
         .notice = [&](const std::string& line) { lines.push_back(line); }});
    ASSERT_OK(session.status());
    for (int i = 0; i < steps; ++i) {
      ASSERT_OK((*session)->Run({{g.x, 1.0f}}, {}, {g.train}).status());
    }
    ASSERT_OK((*session)->Close());
  };
  CountingGraph g;
  auto session = MonitoredTrainingSession::Start(
      {.checkpoint_dir = folder.path,
       .save_checkpoint_steps = 1,
       .notice = [&](const std::string& line) { lines.push_back(line); }});
  ASSERT_OK(session.status());
  for (int i = 0; i < 3; ++i) ASSERT_OK((*session)->Run({{g.x, 1.0f}}, {}, {g.train}).status());
  const auto told = Contains(HasSubstr("another process saves into '"));
  EXPECT_THAT(lines, ::testing::Not(told));
  train(2);
  EXPECT_THAT(lines, ::testing::Not(told));
  ASSERT_OK((*session)->Run({{g.x, 1.0f}}, {}, {g.train}).status());
  EXPECT_THAT(lines, told);
  ASSERT_OK((*session)->Close());
}

TEST(MonitoredTrainingSessionTest, AnOldSignalEndsNoSessionThatDoesNotHeedThem) {
  {
    const StopSignal heeded;
    std::raise(SIGINT);
    EXPECT_EQ(StopSignal::received(), SIGINT);
  }
  CountingGraph g;
  auto session = MonitoredTrainingSession::Start({.stop_on_signals = false});
  ASSERT_OK(session.status());
  EXPECT_FALSE((*session)->ShouldStop());
}

TEST(MonitoredTrainingSessionTest, SummariesAndTheRateAreWritten) {
  const TestFolder folder;
  {
    CountingGraph g;
    g.graph.Collection("summaries").push_back(ScalarSummary("loss", g.loss));
    auto session = MonitoredTrainingSession::Start(
        {.checkpoint_dir = folder.path, .save_summaries_steps = 2, .hooks = {StopAtStep(5)}});
    ASSERT_OK(session.status());
    while (!(*session)->ShouldStop()) {
      ASSERT_OK((*session)->Run({{g.x, 1.0f}}, {}, {g.train}).status());
    }
    ASSERT_OK((*session)->Close());
  }
  std::vector<std::string> tags;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path)) {
    const std::string path = entry.path();
    if (path.find("tfevents") == std::string::npos) continue;
    auto reader = EventReader::Open(path);
    ASSERT_OK(reader.status());
    for (Event event; *(*reader)->Read(&event);) {
      for (const auto& value : event.summary().value()) tags.push_back(value.tag());
    }
  }
  EXPECT_EQ(std::count(tags.begin(), tags.end(), "loss"), 3);
  EXPECT_EQ(std::count(tags.begin(), tags.end(), "global_step/sec"), 2);
}

TEST(MonitoredTrainingSessionTest, CheckpointsNeedAStepCounter) {
  const TestFolder folder;
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Variable w("w", 1.0f);
  const auto session = MonitoredTrainingSession::Start({.checkpoint_dir = folder.path});
  EXPECT_THAT(std::string(session.status().message()), HasSubstr("give GlobalStep()"));
}

TEST(MonitoredTrainingSessionTest, NothingRunsAfterClose) {
  CountingGraph g;
  auto session = MonitoredTrainingSession::Start({.hooks = {StopAtStep(2)}});
  ASSERT_OK(session.status());
  while (!(*session)->ShouldStop()) {
    ASSERT_OK((*session)->Run({{g.x, 1.0f}}, {}, {g.train}).status());
  }
  ASSERT_OK((*session)->Close());
  const auto closed = testing::IsError(StatusCode::kFailedPrecondition, "Session is closed.");
  EXPECT_THAT((*session)->Run({{g.x, 1.0f}}, {}, {g.train}), closed);
  EXPECT_THAT((*session)->RunWithoutHooks<float>({}, g.w), closed);
  EXPECT_OK((*session)->Close());
  EXPECT_EQ((*session)->global_step(), 2);
}

TEST(MonitoredTrainingSessionTest, AnOutputOfAnotherGraphIsRefused) {
  CountingGraph other, g;
  auto session = MonitoredTrainingSession::Start();
  ASSERT_OK(session.status());
  EXPECT_THAT((*session)->Run<float>({{g.x, 1.0f}}, other.loss),
              testing::IsError(StatusCode::kInvalidArgument,
                               "fetch 'Mul' is of another graph than the session's"));
}

TEST(MonitoredTrainingSessionTest, NumbersWithoutMeaningAreRefused) {
  const auto refused = [](const MonitoredTrainingSessionOptions& options) {
    CountingGraph g;
    const Status status = MonitoredTrainingSession::Start(options).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    return std::string(Message(status));
  };
  EXPECT_EQ(refused({.save_checkpoint_steps = -5}),
            "save_checkpoint_steps must be at least 0, found -5");
  EXPECT_THAT(refused({.save_summaries_steps = -3}), HasSubstr("save_summaries_steps"));
  EXPECT_THAT(refused({.log_step_count_steps = -1}), HasSubstr("log_step_count_steps"));
  EXPECT_THAT(refused({.max_recoveries = -1}), HasSubstr("max_recoveries"));
  EXPECT_EQ(refused({.hooks = {StopAtStep(-3)}}),
            "StopAtStep takes a step of at least 0, found -3");
  EXPECT_THAT(refused({.hooks = {StopAfterSteps(-1)}}), HasSubstr("StopAfterSteps"));
  EXPECT_THAT(refused({.hooks = {LoggingTensorHook({}, 0, nullptr)}}), HasSubstr("found 0"));
  EXPECT_THAT(refused({.hooks = {ProfilerHook("p", -1)}}), HasSubstr("found -1"));
}

TEST(MonitoredTrainingSessionTest, StepsThatNobodyCountsEndInAnError) {
  CountingGraph g;
  auto session = MonitoredTrainingSession::Start({.hooks = {StopAtStep(5)}});
  ASSERT_OK(session.status());
  Status status;
  int steps = 0;
  for (; status.ok() && steps < 1000; ++steps) {
    status = (*session)->Run({{g.x, 1.0f}}, {g.loss}).status();
  }
  EXPECT_EQ(steps, 100);
  EXPECT_THAT(status, testing::IsError(StatusCode::kFailedPrecondition,
                                       "training is to stop at step 5, but 100 steps have left the "
                                       "step counter at 0: run the training node in each step, and "
                                       "give GlobalStep() to the optimizer's "
                                       "Minimize"));
}

/// A folder in whose place there is a file for a while, so that nothing can be saved.
class BlockedFolder : public TestFolder {
 public:
  void Block() {
    std::filesystem::rename(path, away_);
    ASSERT_OK(WriteStringToFile(path, "in the way"));
  }
  void Free() {
    std::filesystem::remove(path);
    std::filesystem::rename(away_, path);
  }
  ~BlockedFolder() { std::filesystem::remove_all(away_); }

 private:
  const std::string away_ = path + "-away";
};

TEST(MonitoredTrainingSessionTest, TrainingOutlivesSavesThatFail) {
  BlockedFolder folder;
  CountingGraph g;
  testing::SimulatedClock clock;
  std::vector<std::string> lines;
  // Without a watch for signals there is one thread, whose waits are simulated.
  auto session = MonitoredTrainingSession::Start(
      {.checkpoint_dir = folder.path,
       .save_checkpoint_steps = 1,
       .save_summaries_steps = 0,
       .stop_on_signals = false,
       .notice = [&](const std::string& line) { lines.push_back(line); },
       .clock = &clock});
  ASSERT_OK(session.status());
  const auto run = [&] { return (*session)->Run({{g.x, 1.0f}}, {}, {g.train}).status(); };
  ASSERT_OK(run());
  for (int round = 0; round < 2; ++round) {
    folder.Block();
    lines.clear();
    for (int i = 0; i < 6; ++i) ASSERT_OK(run());
    ASSERT_EQ(lines.size(), 6);
    EXPECT_THAT(lines[0], HasSubstr("is not saved; training goes on to the next checkpoint: "));
    folder.Free();
    ASSERT_OK(run());
  }
  EXPECT_EQ(*LatestCheckpoint(folder.path), folder.path + "/model.ckpt-15");
  folder.Block();
  lines.clear();
  ASSERT_OK(run());
  clock.CallAfter(std::chrono::milliseconds(500), [&] { folder.Free(); });
  EXPECT_OK((*session)->Close());
  EXPECT_THAT(lines[1], HasSubstr("step 16 is not saved; trying again in 2 s: "));
  EXPECT_EQ(*LatestCheckpoint(folder.path), folder.path + "/model.ckpt-16");
}

/// Fails at the first end, as a save does whose parameter server dies.
class InterruptedEnd : public SessionHook {
 public:
  Status End(const RunContext&) override {
    return ++ends == 1 ? Unavailable("a task has died") : OkStatus();
  }
  int ends = 0;
};

TEST(MonitoredTrainingSessionTest, AnEndThatATasksDeathInterruptsIsTriedAgain) {
  const TestFolder folder;
  CountingGraph g;
  const auto hook = std::make_shared<InterruptedEnd>();
  auto session = MonitoredTrainingSession::Start({.checkpoint_dir = folder.path,
                                                  .hooks = {hook, StopAtStep(3)},
                                                  .first_pause = std::chrono::milliseconds(1)});
  ASSERT_OK(session.status());
  while (!(*session)->ShouldStop()) {
    ASSERT_OK((*session)->Run({{g.x, 1.0f}}, {}, {g.train}).status());
  }
  EXPECT_OK((*session)->Close());
  EXPECT_EQ(hook->ends, 2);
  EXPECT_EQ(*LatestCheckpoint(folder.path), folder.path + "/model.ckpt-3");
}

TEST(MonitoredTrainingSessionTest, AnEndBeforeWhichTheVariablesAreLostIsNoGoodEnd) {
  /// The first end fails, and nothing can be saved at it.
  class LostEnd final : public InterruptedEnd {
   public:
    explicit LostEnd(BlockedFolder& folder) : folder_(folder) {}
    Status End(const RunContext& context) override {
      if (ends == 0) folder_.Block();
      context.clock().CallAfter(std::chrono::seconds(40), [this] { folder_.Free(); });
      return InterruptedEnd::End(context);
    }

   private:
    BlockedFolder& folder_;
  };
  BlockedFolder folder;
  CountingGraph g;
  testing::SimulatedClock clock;
  auto session =
      MonitoredTrainingSession::Start({.checkpoint_dir = folder.path,
                                       .hooks = {std::make_shared<LostEnd>(folder), StopAtStep(3)},
                                       .first_pause = std::chrono::minutes(1),
                                       .stop_on_signals = false,
                                       .clock = &clock});
  ASSERT_OK(session.status());
  while (!(*session)->ShouldStop()) {
    ASSERT_OK((*session)->Run({{g.x, 1.0f}}, {}, {g.train}).status());
  }
  EXPECT_THAT((*session)->Close(),
              testing::IsError(StatusCode::kDataLoss,
                               "training had ended at step 3, but the variables were lost before "
                               "they were saved, and are those of step 0 again"));
  EXPECT_EQ(*LatestCheckpoint(folder.path), folder.path + "/model.ckpt-0");
}

TEST(MonitoredTrainingSessionTest, TheFirstSaveMustSucceed) {
  const TestFolder folder;
  ASSERT_OK(WriteStringToFile(folder.path, "in the way"));
  CountingGraph g;
  EXPECT_FALSE(MonitoredTrainingSession::Start({.checkpoint_dir = folder.path}).ok());
}

TEST(MonitoredTrainingSessionTest, AHooksOwnTensorsComeBackToIt) {
  class Doubling final : public SessionHook {
   public:
    Status Begin() override {
      twice_ = (Output(CurrentBuilding().graph->Find("Mul")) * 2).name();
      return OkStatus();
    }
    Status BeforeRun(const RunContext&, RunArguments* arguments) override {
      arguments->feeds = {{"x", Tensor::Scalar(3.0f)}};
      arguments->fetches = {twice_};
      return OkStatus();
    }
    Status AfterRun(const RunContext&, const RunValues& values) override {
      seen = values.fetched[0].scalar<float>();
      return OkStatus();
    }
    float seen = 0;

   private:
    std::string twice_;
  };
  CountingGraph g;
  const auto hook = std::make_shared<Doubling>();
  auto session = MonitoredTrainingSession::Start({.hooks = {hook}});
  ASSERT_OK(session.status());
  EXPECT_EQ(*(*session)->Run<float>({}, g.loss), 3);
  EXPECT_EQ(hook->seen, 6);
}

}  // namespace
}  // namespace tenon
