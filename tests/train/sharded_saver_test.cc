// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <filesystem>

#include "data/checkpoint/tensor_bundle.h"
#include "ops/array/constants.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "tests/data/sample_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"
#include "train/saver/probe.h"
#include "train/saver/saved_model.h"
#include "train/saver/saver.h"
#include "train/variables.h"

namespace tenon::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// Two parameter servers and a worker, each task with files of its own choice.
class ShardedSaverTest : public ::testing::Test {
 protected:
  ShardedSaverTest() : ports_(2, 1) {}

  void Start(const std::vector<FileAccess>& files) {
    for (const auto& [job, tasks] : ports_.spec().jobs()) {
      for (const auto& [task, address] : tasks) {
        ServerOptions options;
        options.cluster = ports_.spec();
        options.job = job;
        options.task = task;
        options.threads = 2;
        options.start_up_deadline = std::chrono::seconds(5);
        if (job == "ps") options.files = files[task];
        auto server = Server::Start(options, AllOps());
        ASSERT_OK(server);
        servers_.push_back(*std::move(server));
      }
    }
  }
  Server& worker() { return *servers_.back(); }

  void Build() {
    for (int i = 0; i < 4; ++i) {
      const DeviceScope ps(StrCat("/job:ps/task:", i % 2));
      const Tensor value = Tensor::Vector<float>({static_cast<float>(i), 5});
      variables_.emplace_back(StrCat("v", i), value, VariableOptions{.resource = i >= 2});
    }
    init_ = GlobalVariablesInitializer();
  }
  Status Probe(const std::string& directory, const std::vector<std::string>& devices) {
    return ProbeCheckpointDirectory(directory, devices,
                                    [&](const Graph& g) { return worker().MakeSession(g); });
  }

  const TemporaryFolder folder_;
  TestCluster ports_;
  std::vector<std::unique_ptr<Server>> servers_;
  Graph graph_{AllOps()};
  GraphBuilding building_{graph_};
  std::vector<Variable> variables_;
  Node* init_ = nullptr;
};

TEST_F(ShardedSaverTest, EachParameterServerWritesAShard) {
  Start({FileAccess(), FileAccess()});
  Build();
  Saver saver({.sharded = true});
  ASSERT_OK(Probe(folder_.path(), saver.devices()));
  EXPECT_THAT(*ListFolder(folder_.path()), ElementsAre());
  auto session = worker().MakeSession(graph_);
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {init_}));
  for (const int step : {1, 2}) {
    ASSERT_OK(saver.Save(**session, folder_ / "m", {.global_step = step}));
  }
  EXPECT_THAT(*ListFolder(folder_.path()),
              ElementsAre("checkpoint", "m-1.data-00000-of-00002", "m-1.data-00001-of-00002",
                          "m-1.index", "m-1.meta", "m-2.data-00000-of-00002",
                          "m-2.data-00001-of-00002", "m-2.index", "m-2.meta"));
  const auto reader = BundleReader::Open(folder_ / "m-2");
  ASSERT_OK(reader);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ((*(*reader)->Find(StrCat("v", i)))->shard, i % 2) << i;
  }
  // Another session of the cluster, whose variables have other values by then.
  std::vector<Output> changes;
  for (const Variable& v : variables_) {
    changes.emplace_back(
        ChangeVariable(*FindVariable(v), "AssignAdd", Tensor::Vector<float>({1, 1})));
  }
  auto other = worker().MakeSession(graph_);
  ASSERT_OK(other);
  for (const Output& change : changes) ASSERT_OK((*other)->Run({}, {}, {change}));
  ASSERT_OK(saver.Restore(**other, *LatestCheckpoint(folder_.path())));
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(*(*other)->Run<std::vector<float>>({}, variables_[i]),
                ElementsAre(static_cast<float>(i), 5));
  }
}

TEST_F(ShardedSaverTest, AParameterServerThatDiesLeavesTheLastCheckpoint) {
  Start({FileAccess(), FileAccess()});
  Build();
  Saver saver({.sharded = true, .max_to_keep = 1});
  auto session = worker().MakeSession(graph_);
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {init_}));
  ASSERT_OK(saver.Save(**session, folder_ / "m", {.global_step = 1}));
  servers_[1].reset();
  EXPECT_FALSE(saver.Save(**session, folder_ / "m", {.global_step = 2}).ok());
  EXPECT_EQ(*LatestCheckpoint(folder_.path()), folder_ / "m-1");
  EXPECT_EQ((*BundleReader::Open(folder_ / "m-1"))->names().size(), 4u);
  EXPECT_FALSE(CheckpointExists(folder_ / "m-2"));
}

TEST_F(ShardedSaverTest, AModelOfAClusterIsServedByOneProcess) {
  Start({FileAccess(), FileAccess()});
  Build();
  Saver saver({.sharded = true});
  auto session = worker().MakeSession(graph_);
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {init_}));
  ModelSignature signature;
  for (int i = 0; i < 4; ++i) signature.outputs[StrCat("v", i)] = variables_[i];
  ASSERT_OK(ExportSavedModel(**session, saver, folder_ / "m", {{"values", signature}}));
  const auto model = LoadSavedModel(folder_ / "m");
  ASSERT_OK(model);
  auto values = model->Run({}, "values");
  ASSERT_OK(values);
  for (int i = 0; i < 4; ++i) {
    const Tensor wanted = Tensor::Vector<float>({static_cast<float>(i), 5});
    EXPECT_TRUE((*values)[StrCat("v", i)].Equals(wanted)) << i;
  }
  // With its devices, it needs the cluster.
  ASSERT_OK(ExportSavedModel(**session, saver, folder_ / "placed", {{"values", signature}},
                             {.clear_devices = false}));
  EXPECT_FALSE(LoadSavedModel(folder_ / "placed").ok());
  const auto placed = LoadSavedModel(
      folder_ / "placed", {.open = [&](const Graph& g) { return worker().MakeSession(g); }});
  ASSERT_OK(placed);
  EXPECT_OK(placed->Run({}, "values"));
}

TEST_F(ShardedSaverTest, OneTaskWritesAllWithoutSharding) {
  Start({FileAccess(), FileAccess()});
  Build();
  Saver saver;
  auto session = worker().MakeSession(graph_);
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {init_}));
  ASSERT_OK(saver.Save(**session, folder_ / "m"));
  EXPECT_EQ((*BundleReader::Open(folder_ / "m"))->num_shards(), 1);
  ASSERT_OK(saver.Restore(**session, folder_ / "m"));
}

TEST_F(ShardedSaverTest, ATaskWithoutTheDirectoryIsNamed) {
  // The relative directory is another one for the second parameter server, and none for the first.
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::create_directories(folder_ / "here");
  std::filesystem::create_directories(folder_ / "there/ckpt");
  std::filesystem::current_path(folder_ / "here");
  Start({{.kind = FileAccess::Kind::kNone, .root = ""},
         {.kind = FileAccess::Kind::kRoot, .root = folder_ / "there"}});
  Build();
  Saver saver({.sharded = true});
  const Status status = Probe("ckpt", saver.devices());
  EXPECT_THAT(status, IsError(StatusCode::kFailedPrecondition,
                              "the directory of checkpoints, 'ckpt', is not shared by all"));
  EXPECT_THAT(std::string(Message(status)),
              AllOf(HasSubstr("/job:ps/task:0 cannot read a file that was written here: "),
                    HasSubstr("graphs may reach no files here"),
                    HasSubstr("/job:ps/task:1 cannot read a file that was written here: "),
                    HasSubstr("No such file"), Not(HasSubstr("{{node"))));
  EXPECT_THAT(*ListFolder("ckpt"), ElementsAre());
  EXPECT_THAT(*ListFolder(folder_ / "there/ckpt"), ElementsAre());
  // Saving says it too.
  auto session = worker().MakeSession(graph_);
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {init_}));
  EXPECT_FALSE(saver.Save(**session, "ckpt/m").ok());
  EXPECT_FALSE(FileExists("ckpt/checkpoint"));
  std::filesystem::current_path(before);
}

TEST_F(ShardedSaverTest, ADirectoryThatOnlyATaskSeesIsNoPlaceToSave) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::create_directories(folder_ / "here");
  std::filesystem::create_directories(folder_ / "there");
  std::filesystem::current_path(folder_ / "here");
  const FileAccess there = {.kind = FileAccess::Kind::kRoot, .root = folder_ / "there"};
  Start({there, there});
  Build();
  Saver saver({.sharded = true});
  auto session = worker().MakeSession(graph_);
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {init_}));
  EXPECT_THAT(
      saver.Save(**session, "ckpt/m"),
      IsError(StatusCode::kFailedPrecondition, "is not shared with the task that wrote it"));
  EXPECT_TRUE(FileExists(folder_ / "there/ckpt/m.index"));
  EXPECT_FALSE(FileExists("ckpt/checkpoint"));
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace tenon::testing
