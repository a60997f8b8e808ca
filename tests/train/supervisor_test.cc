// SPDX-License-Identifier: Apache-2.0
#include "train/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "data/files/file.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "runtime/session/local_session.h"
#include "tests/testing/status_matchers.h"
#include "train/variables.h"

namespace tenon {
namespace {

TEST(SupervisorTest, SavesInTheBackgroundAndGoesOnFromThere) {
  const std::string folder = ::testing::TempDir() + TemporaryName("supervised");
  for (const int64_t before : {0, 3}) {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    const Output count = AssignAdd(GlobalStep().ref(), 1);
    Saver saver;
    Supervisor supervisor({.checkpoint_dir = folder,
                           .saver = &saver,
                           .save_model_period = std::chrono::milliseconds(50)});
    auto session = supervisor.PrepareOrWaitForSession([&] { return MakeLocalSession(graph); });
    ASSERT_OK(session.status());
    EXPECT_EQ(*(*session)->Run<int64_t>({}, GlobalStep()), before);
    for (int i = 0; i < 3; ++i) ASSERT_OK((*session)->Run({}, {}, {count}).status());
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const std::string wanted = StrCat(folder, "/model.ckpt-", before + 3);
    const auto saved = [&] {
      const auto latest = LatestCheckpoint(folder);
      return latest.ok() && *latest == wanted;
    };
    while (!saved() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(saved());
    // The second one is left by its destructor, as after an error.
    if (before == 0) EXPECT_OK(supervisor.Stop());
  }
  std::filesystem::remove_all(folder);
}

TEST(SupervisorTest, ASaveThatFailsIsSaidAndTheLastOneDecides) {
  const std::string folder = ::testing::TempDir() + TemporaryName("supervised");
  const std::string away = folder + "-away";
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output count = AssignAdd(GlobalStep().ref(), 1);
  Saver saver;
  Mutex mu;
  std::vector<std::string> lines;
  Supervisor supervisor({.notice =
                             [&](const std::string& line) {
                               MutexLock lock(mu);
                               lines.push_back(line);
                             },
                         .checkpoint_dir = folder,
                         .saver = &saver,
                         .save_model_period = std::chrono::milliseconds(300)});
  auto session = supervisor.PrepareOrWaitForSession([&] { return MakeLocalSession(graph); });
  ASSERT_OK(session.status());
  std::filesystem::rename(folder, away);
  ASSERT_OK(WriteStringToFile(folder, "in the way"));
  ASSERT_OK((*session)->Run({}, {}, {count}).status());
  const auto failures = [&] {
    MutexLock lock(mu);
    return lines.size();
  };
  while (failures() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::filesystem::remove(folder);
  std::filesystem::rename(away, folder);
  EXPECT_FALSE(supervisor.ShouldStop());
  EXPECT_OK(supervisor.Stop());
  EXPECT_EQ(*LatestCheckpoint(folder), folder + "/model.ckpt-1");
  EXPECT_EQ(supervisor.saved_step(), 1);
  EXPECT_EQ(lines.back(), StrCat("saved ", folder, "/model.ckpt-1"));
  // The reason is in the same line.
  EXPECT_THAT(lines[0], ::testing::HasSubstr(": Not a directory"));
  std::filesystem::remove_all(folder);
}

TEST(SupervisorTest, AFolderThatNobodyCanWriteInIsToldAtTheStart) {
  const std::string file = ::testing::TempDir() + TemporaryName("plain");
  ASSERT_OK(WriteStringToFile(file, "no folder"));
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  GlobalStep();
  Saver saver;
  for (const bool is_chief : {true, false}) {
    Supervisor supervisor({.is_chief = is_chief,
                           .ready_deadline = std::chrono::milliseconds(1),
                           .checkpoint_dir = file + "/run",
                           .saver = &saver});
    const auto session =
        supervisor.PrepareOrWaitForSession([&] { return MakeLocalSession(graph); });
    if (is_chief) {
      EXPECT_EQ(Message(session.status()),
                StrCat("no checkpoint can be written in '", file, "/run': cannot make the folder '",
                       file, "/run': Not a directory"));
    } else {
      EXPECT_EQ(session.status().code(), StatusCode::kDeadlineExceeded);  // it waits for the chief
    }
  }
  std::filesystem::remove(file);
}

TEST(SupervisorTest, ASignalAsksForTheEnd) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Variable w("w", 1.0f);
  Supervisor supervisor({});
  auto session = supervisor.PrepareOrWaitForSession([&] { return MakeLocalSession(graph); });
  ASSERT_OK(session.status());
  EXPECT_FALSE(supervisor.ShouldStop());
  std::raise(SIGTERM);
  EXPECT_TRUE(supervisor.ShouldStop());
  EXPECT_OK(supervisor.Stop());
}

}  // namespace
}  // namespace tenon
