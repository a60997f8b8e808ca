// SPDX-License-Identifier: Apache-2.0
// A process saves a checkpoint and dies before any of its calls to the system: its directory has a
// complete checkpoint, the old one or the new, in its state file.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "data/tensor_bundle.h"
#include "ops/array/constants.h"
#include "ops/math/operators.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "runtime/local_session.h"
#include "tests/data/sample_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/train/traced_process.h"
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
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph, {.cpu_devices = 2}));
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

class CheckpointCrashTest : public ::testing::TestWithParam<Way> {
 protected:
  /// Runs SaveNext in a process of its own.
  FileTrace Run(const std::string& folder, bool traced, int die_at) const {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    return RunTraced({StrCat("--gtest_filter=", test->test_suite_name(), ".", test->name())},
                     {{kFolderVariable, folder},
                      {kWayVariable, StrCat(static_cast<int>(GetParam()))},
                      {kTracedVariable, traced ? "1" : ""},
                      {"ASAN_OPTIONS", "detect_leaks=0"}},
                     folder, die_at);
  }
};

TEST_P(CheckpointCrashTest, AtEachCallALastGoodCheckpointStays) {
  if (const char* folder = std::getenv(kFolderVariable)) {  // this is the process that dies
    const Way way = static_cast<Way>(std::atoi(std::getenv(kWayVariable)));
    const Status status = SaveNext(way, folder, *std::getenv(kTracedVariable) != '\0');
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
    _exit(status.ok() ? 0 : 1);
  }
  if (const Status s = CanTrace(); !s.ok()) GTEST_SKIP() << s;
  const TemporaryFolder folder;
  const std::string base = folder / "base", work = folder / "work";
  std::filesystem::create_directories(base);
  ASSERT_EQ(Run(base, false, 0).exit_code, 0);
  ASSERT_EQ(WholeStep(base), 1);
  int old_ones = 0, new_ones = 0;
  for (int die_at = 1;; ++die_at) {
    std::filesystem::remove_all(work);
    std::filesystem::copy(base, work, std::filesystem::copy_options::recursive);
    const FileTrace trace = Run(work, true, die_at);
    SCOPED_TRACE(trace.calls.empty() ? "" : StrCat(die_at, ": before ", trace.calls.back()));
    EXPECT_EQ(trace.mistakes, std::vector<std::string>());
    if (trace.finished) {
      ASSERT_EQ(trace.exit_code, 0);
      EXPECT_EQ(WholeStep(work), 2);
      EXPECT_GT(die_at, 25);
      break;
    }
    ASSERT_EQ(static_cast<int>(trace.calls.size()), die_at);
    // As if the machine had died too: what was not synced is lost.
    for (const std::string& path : trace.unsynced) {
      if (FileExists(path)) std::filesystem::resize_file(path, 0);
    }
    const float step = WholeStep(work);
    (step == 1 ? old_ones : new_ones) += 1;
    EXPECT_TRUE(step == 1 || step == 2) << step;
    EXPECT_TRUE(step == 2 || new_ones == 0) << "the new checkpoint was there, and is gone";
    // What is left over is in nobody's way.
    ASSERT_EQ(Run(work, false, 0).exit_code, 0);
    EXPECT_EQ(WholeStep(work), step + 1);
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

}  // namespace
}  // namespace tenon::testing
