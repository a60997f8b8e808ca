// SPDX-License-Identifier: Apache-2.0
// A process saves a checkpoint and dies before any of its calls to the system: its directory has a
// complete checkpoint, the old one or the new, in its state file. The same of a model that is
// exported.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "data/checkpoint/tensor_bundle.h"
#include "ops/array/constants.h"
#include "ops/math/operators.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "runtime/session/local_session.h"
#include "tests/data/sample_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/train/traced_process.h"
#include "train/saver/saved_model.h"
#include "train/saver/saver.h"
#include "train/variables.h"

namespace tenon::testing {
namespace {

constexpr char kFolderVariable[] = "TENON_CRASH_FOLDER";
constexpr char kWayVariable[] = "TENON_CRASH_WAY";
constexpr char kTracedVariable[] = "TENON_CRASH_TRACED";
constexpr int64_t kElements = 5000;  // more than a buffer of the C library

/// How the process saves.
enum class Way { kNextStep, kSamePrefix, kSharded };

/// Both variables hold their step; a checkpoint is whole when each element does.
Tensor StepValue(float step) {
  Tensor value = *Tensor::Allocate(CpuAllocator(), DType::kFloat, Shape({kElements}));
  std::fill_n(value.data<float>(), kElements, step);
  return value;
}

/// What the process that dies does: it goes on from the latest checkpoint, and saves the next one.
Status SaveNext(Way way, const std::string& folder, bool traced) {
  std::filesystem::current_path(folder);
  if (traced) LetCallsBeTraced();
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  Variable a, b;
  {
    const DeviceScope first("/device:CPU:0");
    a = Variable("a", StepValue(1));
  }
  {
    const DeviceScope second("/device:CPU:1");
    b = Variable("b", StepValue(1), {.resource = true});
  }
  const Output next = Assign(a.ref(), a + 1.0f);
  Node* const both = ChangeVariable(*FindVariable(b), "AssignAdd", StepValue(1));
  Node* const init = GlobalVariablesInitializer();
  Saver saver({.sharded = way == Way::kSharded, .max_to_keep = 1});
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph, {.devices = {.cpus = 2}}));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  const auto latest = LatestCheckpoint("ckpt");
  if (latest.ok()) {
    TENON_RETURN_IF_ERROR(saver.Restore(*session, *latest));
    saver.RecoverLastCheckpoints(GetCheckpointState("ckpt")->all);
    TENON_RETURN_IF_ERROR(session->Run({}, {}, {next, both}).status());
  }
  TENON_ASSIGN_OR_RETURN(const std::vector<float> values, session->Run<std::vector<float>>({}, a));
  SaveOptions options;
  if (way != Way::kSamePrefix) options.global_step = static_cast<int64_t>(values[0]);
  return saver.Save(*session, "ckpt/m", options).status();
}

/// The step of the checkpoint that the state file names; 0, and a failure, unless it is whole.
float WholeStep(const std::string& folder) {
  const auto latest = LatestCheckpoint(folder + "/ckpt");
  EXPECT_OK(latest);
  if (!latest.ok()) return 0;
  const auto reader = BundleReader::Open(*latest);
  EXPECT_OK(reader);
  if (!reader.ok()) return 0;
  const auto a = (*reader)->Read("a"), b = (*reader)->Read("b");
  EXPECT_OK(a);
  EXPECT_OK(b);
  if (!a.ok() || !b.ok()) return 0;
  const float step = a->flat<float>()[0];
  EXPECT_TRUE(a->Equals(StepValue(step)));
  EXPECT_TRUE(b->Equals(StepValue(step)));
  return step;
}

/// Runs the test that calls it again, in a process of its own.
FileTrace RunInProcess(const std::string& folder, Way way, bool traced, int die_at) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  return RunTraced({StrCat("--gtest_filter=", test->test_suite_name(), ".", test->name())},
                   {{kFolderVariable, folder},
                    {kWayVariable, StrCat(static_cast<int>(way))},
                    {kTracedVariable, traced ? "1" : ""},
                    {"GTEST_TOTAL_SHARDS", "1"},
                    {"GTEST_SHARD_INDEX", "0"},
                    {"ASAN_OPTIONS", "detect_leaks=0"}},
                   folder, die_at);
}

/// In that process: runs `what`, and ends it.
[[noreturn]] void EndAfter(const Status& status) {
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  _exit(status.ok() ? 0 : 1);
}

/// As if the machine had died too: what was not synced is lost.
void LoseUnsynced(const FileTrace& trace) {
  for (const std::string& path : trace.unsynced) {
    if (FileExists(path)) std::filesystem::resize_file(path, 0);
  }
}

class CheckpointCrashTest : public ::testing::TestWithParam<Way> {};

TEST_P(CheckpointCrashTest, AtEachCallALastGoodCheckpointStays) {
  if (const char* folder = std::getenv(kFolderVariable)) {  // this is the process that dies
    const Way way = static_cast<Way>(std::atoi(std::getenv(kWayVariable)));
    EndAfter(SaveNext(way, folder, *std::getenv(kTracedVariable) != '\0'));
  }
  if (const Status s = CanTrace(); !s.ok()) GTEST_SKIP() << s;
  const TemporaryFolder folder;
  const std::string base = folder / "base", work = folder / "work";
  std::filesystem::create_directories(base);
  ASSERT_EQ(RunInProcess(base, GetParam(), false, 0).exit_code, 0);
  ASSERT_EQ(WholeStep(base), 1);
  int old_ones = 0, new_ones = 0;
  for (int die_at = 1;; ++die_at) {
    std::filesystem::remove_all(work);
    std::filesystem::copy(base, work, std::filesystem::copy_options::recursive);
    const FileTrace trace = RunInProcess(work, GetParam(), true, die_at);
    SCOPED_TRACE(trace.calls.empty() ? "" : StrCat(die_at, ": before ", trace.calls.back()));
    EXPECT_EQ(trace.mistakes, std::vector<std::string>());
    if (trace.finished) {
      ASSERT_EQ(trace.exit_code, 0);
      EXPECT_EQ(WholeStep(work), 2);
      EXPECT_GT(die_at, 25);
      break;
    }
    ASSERT_EQ(static_cast<int>(trace.calls.size()), die_at);
    LoseUnsynced(trace);
    const float step = WholeStep(work);
    (step == 1 ? old_ones : new_ones) += 1;
    EXPECT_TRUE(step == 1 || step == 2) << step;
    EXPECT_TRUE(step == 2 || new_ones == 0) << "the new checkpoint was there, and is gone";
    // What is left over is in nobody's way.
    ASSERT_EQ(RunInProcess(work, GetParam(), false, 0).exit_code, 0);
    EXPECT_EQ(WholeStep(work), step + 1);
    const std::vector<std::string> left = *ListFolder(work + "/ckpt");
    for (const std::string& name : left) {
      EXPECT_TRUE(name.find(".tempstate") == std::string::npos || name.starts_with("checkpoint"))
          << name;
      EXPECT_FALSE(name.ends_with("_temp")) << name;
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(old_ones, 15);
  EXPECT_GT(new_ones, 5);
}

std::string WayName(const ::testing::TestParamInfo<Way>& info) {
  return info.param == Way::kNextStep     ? "NextStep"
         : info.param == Way::kSamePrefix ? "SamePrefix"
                                          : "Sharded";
}

INSTANTIATE_TEST_SUITE_P(Ways, CheckpointCrashTest,
                         ::testing::Values(Way::kNextStep, Way::kSamePrefix, Way::kSharded),
                         WayName);

Status Export(const std::string& folder, bool traced) {
  std::filesystem::current_path(folder);
  if (traced) LetCallsBeTraced();
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Variable a("a", StepValue(3));
  Node* const init = GlobalVariablesInitializer();
  Saver saver;
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  return ExportSavedModel(*session, saver, "models/1",
                          {{kDefaultServingSignature, {.inputs = {}, .outputs = {{"a", a}}}}});
}

TEST(ModelCrashTest, AModelIsThereWholeOrNotAtAll) {
  if (const char* folder = std::getenv(kFolderVariable)) {
    EndAfter(Export(folder, *std::getenv(kTracedVariable) != '\0'));
  }
  if (const Status s = CanTrace(); !s.ok()) GTEST_SKIP() << s;
  const TemporaryFolder folder;
  const std::string path = folder / "models/1";
  int without = 0, with = 0;
  for (int die_at = 1;; ++die_at) {
    std::filesystem::remove_all(folder / "models");
    const FileTrace trace = RunInProcess(folder.path(), Way::kNextStep, true, die_at);
    SCOPED_TRACE(trace.calls.empty() ? "" : StrCat(die_at, ": before ", trace.calls.back()));
    EXPECT_EQ(trace.mistakes, std::vector<std::string>());
    LoseUnsynced(trace);
    if (!FileExists(path)) {
      ++without;
      ASSERT_EQ(RunInProcess(folder.path(), Way::kNextStep, false, 0).exit_code, 0);
    } else {
      ++with;
    }
    auto model = LoadSavedModel(path);
    ASSERT_OK(model);
    auto outputs = model->Run({});
    ASSERT_OK(outputs);
    EXPECT_TRUE((*outputs)["a"].Equals(StepValue(3)));
    if (trace.finished || HasFailure()) break;
  }
  EXPECT_GT(without, 15);
  EXPECT_GT(with, 1);
}

}  // namespace
}  // namespace tenon::testing
