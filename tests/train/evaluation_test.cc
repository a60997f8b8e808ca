// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "data/files/file.h"
#include "data/files/path.h"
#include "data/records/event_file.h"
#include "distributed/protocol/server.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "tests/testing/simulated_clock.h"
#include "tests/testing/status_matchers.h"
#include "train/evaluation/evaluate_checkpoints.h"
#include "train/evaluation/model_export.h"
#include "train/evaluation/stop_without_progress.h"
#include "train/evaluation/training_life.h"
#include "train/saver/checkpoint_state.h"
#include "train/saver/saver.h"
#include "train/sessions/hooks.h"
#include "train/sessions/monitored_training_session.h"
#include "train/variables.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsError;

/// A training whose only weight is the number of its steps.
class EvaluationTest : public ::testing::Test {
 protected:
  EvaluationTest() : building_(graph_) {
    GlobalStep();
    weight_ = Variable("w", 0.f);
    options_.checkpoint_dir = folder_;
    options_.clock = &clock_;
    options_.notice = [this](const std::string& line) { notices_.push_back(line); };
  }

  static std::string NewFolder() {
    const std::string folder = JoinPath(
        ::testing::TempDir(),
        StrCat("evaluation", ::testing::UnitTest::GetInstance()->current_test_info()->name()));
    if (FileExists(folder)) EXPECT_OK(RemoveTree(folder));
    return folder;
  }

  /// Steps with a checkpoint after each.
  void Train(int64_t to_step, std::vector<std::shared_ptr<SessionHook>> hooks = {}) {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    const Variable step = GlobalStep();
    const Variable weight("w", 0.f);
    const Output changed = AssignAdd(weight.ref(), 1.f);
    const Output counted = AssignAdd(step.ref(), int64_t{1});
    hooks.push_back(StopAtStep(to_step));
    const auto session = MonitoredTrainingSession::Start({.checkpoint_dir = folder_,
                                                          .save_checkpoint_steps = 1,
                                                          .save_summaries_steps = 0,
                                                          .hooks = hooks,
                                                          .stop_on_signals = false});
    ASSERT_OK(session.status());
    while (!(*session)->ShouldStop()) {
      ASSERT_OK((*session)->Run({}, {}, {changed.node, counted.node}).status());
    }
    ASSERT_OK((*session)->Close());
  }

  StatusOr<std::vector<Evaluation>> Evaluate() {
    return EvaluateCheckpoints(options_, [this](Session& session) -> StatusOr<MetricValues> {
      TENON_ASSIGN_OR_RETURN(const float weight, session.Run<float>({}, weight_));
      return MetricValues{{"distance", std::abs(weight - 3)}, {"weight", weight}};
    });
  }
  static std::vector<int64_t> Steps(const std::vector<Evaluation>& evaluations) {
    std::vector<int64_t> steps;
    for (const Evaluation& evaluation : evaluations) steps.push_back(evaluation.step);
    return steps;
  }

  const std::string folder_ = NewFolder();
  testing::SimulatedClock clock_;
  Graph graph_{AllOps()};
  const GraphBuilding building_;
  Output weight_;
  EvaluationOptions options_;
  std::vector<std::string> notices_;
};

TEST_F(EvaluationTest, TheLatestCheckpoint) {
  Train(5);
  const auto evaluations = Evaluate();
  ASSERT_OK(evaluations.status());
  ASSERT_THAT(Steps(*evaluations), ElementsAre(5));
  EXPECT_EQ(evaluations->front().metrics.at("weight"), 5);
  EXPECT_THAT(notices_, ElementsAre("evaluation at step 5: distance 2, weight 5"));
  const auto written = ReadMetric(JoinPath(folder_, "eval"), "weight");
  ASSERT_OK(written.status());
  EXPECT_EQ(*written, (std::map<int64_t, double>{{5, 5.}}));
}

TEST_F(EvaluationTest, FollowsATrainingToItsEnd) {
  int looks = 0;
  // Nothing at first; then two checkpoints; the last one is saved just before the end.
  options_.training_goes_on = [&] {
    ++looks;
    if (looks == 3) Train(1);
    if (looks == 5) Train(2);
    if (looks == 8) Train(4);
    return looks < 8;
  };
  const auto evaluations = Evaluate();
  ASSERT_OK(evaluations.status());
  EXPECT_THAT(Steps(*evaluations), ElementsAre(1, 2, 4));
}

TEST_F(EvaluationTest, EndsAfterTheLastStep) {
  Train(3);
  options_.last_step = 3;
  options_.training_goes_on = [] { return true; };
  const auto evaluations = Evaluate();
  ASSERT_OK(evaluations.status());
  EXPECT_THAT(Steps(*evaluations), ElementsAre(3));
}

TEST_F(EvaluationTest, IsThrottledButForTheLastOne) {
  int looks = 0;
  options_.throttle = std::chrono::seconds(10);
  options_.training_goes_on = [&] {
    if (++looks <= 15) Train(looks);
    return looks < 15;
  };
  const auto evaluations = Evaluate();
  ASSERT_OK(evaluations.status());
  EXPECT_THAT(Steps(*evaluations), ElementsAre(1, 12, 15));
}

TEST_F(EvaluationTest, ErrorsAreTold) {
  EXPECT_THAT(Evaluate(), IsError(StatusCode::kNotFound, "there was no checkpoint in '"));
  Train(1);
  options_.training_goes_on = []() -> StatusOr<bool> {
    return Status(StatusCode::kUnauthenticated, "another key");
  };
  EXPECT_THAT(Evaluate(), IsError(StatusCode::kUnauthenticated, "another key"));
  options_.training_goes_on = {};
  const Variable more("more", 0.f);
  EXPECT_THAT(Evaluate(), IsError(StatusCode::kNotFound, "more"));
  options_.checkpoint_dir = "";
  EXPECT_THAT(Evaluate(), IsError(StatusCode::kInvalidArgument, "checkpoint_dir is empty"));
}

TEST_F(EvaluationTest, LatestAndBestModels) {
  Saver saver;
  const ModelExportOptions latest = {
      .folder = JoinPath(folder_, "latest"),
      .signatures = {{kDefaultServingSignature, {.inputs = {}, .outputs = {{"w", weight_}}}}},
      .saver = &saver,
      .keep = 2};
  ModelExportOptions best = latest;
  best.folder = JoinPath(folder_, "best");
  options_.saver = &saver;
  options_.exporters = {LatestExport(latest),
                        BestExport(best, JoinPath(folder_, "eval"), "distance", Better::kSmaller)};
  int looks = 0;
  options_.training_goes_on = [&] {
    if (++looks <= 5) Train(looks);
    return looks < 5;
  };
  ASSERT_OK(Evaluate().status());
  const auto versions = [](const std::string& folder) {
    std::vector<std::string> names = *ListFolder(folder);
    std::sort(names.begin(), names.end());
    return names;
  };
  EXPECT_THAT(versions(latest.folder), ElementsAre("4", "5"));
  // Step 3 is nearest to 3; what came after it is worse.
  EXPECT_THAT(versions(best.folder), ElementsAre("2", "3"));
  const auto model = LoadSavedModel(JoinPath(best.folder, "3"));
  ASSERT_OK(model.status());
  EXPECT_EQ(model->Run({})->at("w").scalar<float>(), 3);
  // An evaluator that is started again remembers the best one, and leaves what is there.
  options_.training_goes_on = {};
  ASSERT_OK(Evaluate().status());
  EXPECT_THAT(versions(best.folder), ElementsAre("2", "3"));
  options_.exporters = {BestExport(best, JoinPath(folder_, "eval"), "auc", Better::kLarger)};
  EXPECT_THAT(Evaluate(),
              IsError(StatusCode::kInvalidArgument, "no metric 'auc'; it has distance, weight"));
}

TEST_F(EvaluationTest, TrainingEndsWithoutProgress) {
  const std::string eval_dir = JoinPath(folder_, "eval");
  const auto writer = EventWriter::Create(eval_dir);
  ASSERT_OK(writer.status());
  for (const auto& [step, loss] : {std::pair{100, 3.f}, {200, 1.f}, {300, 2.f}, {400, 1.5f}}) {
    ASSERT_OK((*writer)->AddScalar("loss", loss, step));
  }
  std::string reason;
  StopWithoutProgressOptions stop = {.eval_dir = eval_dir,
                                     .max_steps_without_progress = 201,
                                     .period = std::chrono::milliseconds(0),
                                     .notice = [&](const std::string& line) { reason = line; }};
  Train(10, {StopWithoutProgress(stop)});
  EXPECT_EQ(*LatestCheckpoint(folder_), JoinPath(folder_, "model.ckpt-10"));
  stop.max_steps_without_progress = 200;
  stop.min_steps = 14;
  Train(100, {StopWithoutProgress(stop)});
  EXPECT_EQ(*LatestCheckpoint(folder_), JoinPath(folder_, "model.ckpt-15"));
  EXPECT_EQ(reason, "training ends: loss was best at step 200, 1, and is 1.5 at step 400");
}

TEST(MetricHistoryTest, PassesOverWhatIsNotWhole) {
  const std::string folder = JoinPath(::testing::TempDir(), "metric_history");
  if (FileExists(folder)) ASSERT_OK(RemoveTree(folder));
  EXPECT_TRUE(ReadMetric(folder, "loss")->empty());
  const auto writer = EventWriter::Create(folder);
  ASSERT_OK((*writer)->AddScalar("loss", 2, 7));
  ASSERT_OK((*writer)->AddScalar("other", 3, 8));
  ASSERT_OK((*writer)->AddScalar("loss", 1, 9));
  const std::string path = (*writer)->path();
  const std::string whole = *ReadFileToString(path);
  ASSERT_OK(WriteStringToFile(path, whole.substr(0, whole.size() - 3)));
  ASSERT_OK(WriteStringToFile(JoinPath(folder, "events.out.tfevents.1.x.1.0"), ""));
  const auto values = ReadMetric(folder, "loss");
  ASSERT_OK(values.status());
  EXPECT_EQ(*values, (std::map<int64_t, double>{{7, 2.}}));
}

TEST(MetricHistoryTest, TheBestStep) {
  const double nan = std::nan("");
  EXPECT_EQ(BestStep({{1, 2.}, {2, 1.}, {3, 1.}}, Better::kSmaller), 2);
  EXPECT_EQ(BestStep({{1, nan}, {2, 1.}, {3, nan}}, Better::kLarger), 2);
  EXPECT_EQ(BestStep({{1, nan}, {2, nan}}, Better::kLarger), 1);
}

Credentials WithToken(const std::string& token) {
  Credentials credentials;
  credentials.token = token;
  return credentials;
}

TEST(TrainingLifeTest, TheChiefComesAndGoes) {
  testing::SimulatedClock clock;
  std::vector<std::string> notices;
  auto server = Server::Start({.port = 0}, AllOps());
  ASSERT_OK(server.status());
  const std::string address = StrCat("127.0.0.1:", (*server)->port());
  TrainingLife life({.chief = address, .clock = &clock});
  EXPECT_EQ(*life.GoesOn(), true);
  TrainingLife stranger({.chief = address, .credentials = WithToken("x"), .clock = &clock});
  EXPECT_EQ(*stranger.GoesOn(), true);
  server->reset();
  EXPECT_EQ(*life.GoesOn(), true);
  clock.SleepFor(std::chrono::seconds(11));
  EXPECT_EQ(*life.GoesOn(), false);
  TrainingLife late({.chief = address,
                     .start_up_deadline = std::chrono::seconds(30),
                     .notice = [&](const std::string& line) { notices.push_back(line); },
                     .clock = &clock});
  clock.SleepFor(std::chrono::seconds(20));
  EXPECT_EQ(*late.GoesOn(), true);
  clock.SleepFor(std::chrono::seconds(11));
  EXPECT_EQ(*late.GoesOn(), false);
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_THAT(notices[0], HasSubstr("the chief has not come within 30 s: "));
}

TEST(TrainingLifeTest, AnotherSecretIsAnError) {
  auto server = Server::Start({.port = 0, .credentials = WithToken("right")}, AllOps());
  ASSERT_OK(server.status());
  TrainingLife life(
      {.chief = StrCat("127.0.0.1:", (*server)->port()), .credentials = WithToken("wrong")});
  EXPECT_THAT(life.GoesOn(), IsError(StatusCode::kUnauthenticated, "token"));
}

}  // namespace
}  // namespace tenon
