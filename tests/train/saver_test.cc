// SPDX-License-Identifier: Apache-2.0
#include "train/saver/saver.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "data/checkpoint/tensor_bundle.h"
#include "ops/array/constants.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "runtime/session/local_session.h"
#include "tests/data/sample_files.h"
#include "tests/testing/status_matchers.h"
#include "train/replica_device_setter.h"
#include "train/variables.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A graph under construction, and a session on it.
struct SavingProgram {
  Graph graph{AllOps()};
  GraphBuilding building{graph};
  std::unique_ptr<Session> session;

  /// Opens the session; the variables get their initial values.
  Status Start() {
    Node* init = GlobalVariablesInitializer();
    TENON_ASSIGN_OR_RETURN(session, MakeLocalSession(graph));
    return session->Run({}, {}, {init}).status();
  }
  Tensor Value(const Output& fetch) const {
    auto value = session->Run<Tensor>({}, fetch);
    EXPECT_OK(value);
    return value.ok() ? *value : Tensor();
  }
};

Tensor Row(const std::vector<float>& values) { return Tensor::Vector<float>(values); }

std::vector<std::string> NamesIn(const std::string& folder) {
  auto names = ListFolder(folder);
  EXPECT_OK(names);
  return names.ok() ? *names : std::vector<std::string>();
}

TEST(SaverTest, VariablesOfEveryKindComeBack) {
  const TemporaryFolder folder;
  const std::vector<Tensor> values = {
      Row({1, -2.5}),
      Tensor::Of<double>({1, 2}, {3, 4}),
      Tensor::Scalar(int32_t{-7}),
      Tensor::Vector<int64_t>({int64_t{1} << 40, 0}),
      Tensor::Vector<std::string>({"text", "", std::string(300, 'x')}),
      Tensor::Of<bool>({2}, {true, false}),
      Tensor::Of<Half>({2}, {Half(0.5f), Half(-2.0f)}),
      Tensor::Of<BFloat16>({1}, {BFloat16(3.0f)})};
  const auto build = [&](std::vector<Variable>* variables, bool zeros) {
    for (const bool resource : {false, true}) {
      for (const Tensor& value : values) {
        const Tensor initial =
            zeros ? *Tensor::Allocate(CpuAllocator(), value.dtype(), value.shape()) : value;
        variables->emplace_back(StrCat("v", variables->size()), initial,
                                VariableOptions{.resource = resource});
      }
    }
  };
  std::string prefix;
  {
    SavingProgram p;
    std::vector<Variable> variables;
    build(&variables, false);
    Saver saver;
    ASSERT_OK(p.Start());
    auto saved = saver.Save(*p.session, folder / "model", {.global_step = 42});
    ASSERT_OK(saved);
    prefix = *saved;
    EXPECT_EQ(prefix, folder / "model-42");
  }
  SavingProgram p;
  std::vector<Variable> variables;
  build(&variables, true);
  const Saver saver;
  ASSERT_OK(p.graph.error());
  auto session = MakeLocalSession(p.graph);
  ASSERT_OK(session);
  p.session = *std::move(session);
  ASSERT_OK(saver.Restore(*p.session, prefix));  // without any initializer
  for (size_t i = 0; i < variables.size(); ++i) {
    EXPECT_TRUE(p.Value(variables[i]).Equals(values[i % values.size()])) << i;
  }
}

TEST(SaverTest, TheNodesHaveTensorFlowsNames) {
  SavingProgram p;
  const Variable v("v", Row({1, 2})), r("r", Row({3}), {.resource = true});
  const Saver saver, second;
  ASSERT_OK(p.graph.error());
  for (const char* name :
       {"save/filename/input", "save/filename", "save/Const", "save/SaveV2",
        "save/SaveV2/tensor_names", "save/SaveV2/shape_and_slices", "save/control_dependency",
        "save/RestoreV2", "save/RestoreV2/tensor_names", "save/Assign", "save/AssignVariableOp",
        "save/restore_all/NoOp", "save/restore_all", "save_1/SaveV2", "save_1/restore_all"}) {
    EXPECT_NE(p.graph.Find(name), nullptr) << name;
  }
}

TEST(SaverTest, ShardedNodesHaveTensorFlowsNamesAndAreOnTheDevicesOfTheVariables) {
  SavingProgram p;
  {
    const DeviceScope ps("/job:ps/task:1");
    const Variable b("b", Row({3}));
  }
  {
    const DeviceScope ps("/job:ps/task:0");
    const Variable a("a", Row({1, 2}));
  }
  const Saver saver({.sharded = true});
  ASSERT_OK(p.graph.error());
  EXPECT_THAT(saver.devices(), ElementsAre("/job:ps/task:0", "/job:ps/task:1"));
  for (const auto& [name, device] : std::vector<std::pair<std::string, std::string>>{
           {"save/num_shards", ""},
           {"save/ShardedFilename", "/job:ps/task:0/device:CPU:0"},
           {"save/SaveV2", "/job:ps/task:0/device:CPU:0"},
           {"save/SaveV2_1", "/job:ps/task:1/device:CPU:0"},
           {"save/SaveV2_1/tensor_names", "/job:ps/task:1/device:CPU:0"},
           {"save/MergeV2Checkpoints", "/job:ps/task:1/device:CPU:0"},
           {"save/RestoreV2", "/job:ps/task:0/device:CPU:0"},
           {"save/RestoreV2_1", "/job:ps/task:1/device:CPU:0"},
           {"save/Assign_1", "/job:ps/task:1"},
           {"save/restore_shard", "/job:ps/task:0"},
           {"save/restore_shard_1", "/job:ps/task:1"},
           {"save/restore_all", ""}}) {
    const Node* node = p.graph.Find(name);
    ASSERT_NE(node, nullptr) << name;
    EXPECT_EQ(node->requested_device(), device) << name;
  }
}

TEST(SaverTest, AmongReplicasShardsAreOnTheParameterServersAndAllElseOnTheWorker) {
  SavingProgram p;
  const DeviceScope replicas(
      ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = "/job:worker/task:3"}));
  const Variable a("a", Row({1})), b("b", Row({2}), {.resource = true});
  const Saver sharded({.sharded = true}), whole({.name = "whole"});
  ASSERT_OK(p.graph.error());
  for (const auto& [name, device] : std::vector<std::pair<std::string, std::string>>{
           {"save/SaveV2", "/job:ps/task:0/device:CPU:0"},
           {"save/SaveV2_1", "/job:ps/task:1/device:CPU:0"},
           {"save/RestoreV2_1", "/job:ps/task:1/device:CPU:0"},
           {"save/AssignVariableOp", "/job:ps/task:1"},
           {"save/restore_all", "/job:worker/task:3"},
           {"whole/SaveV2", "/job:worker/task:3"},
           {"whole/RestoreV2", "/job:worker/task:3/device:CPU:0"},
           {"whole/Assign", "/job:ps/task:0"}}) {
    const Node* node = p.graph.Find(name);
    ASSERT_NE(node, nullptr) << name;
    EXPECT_EQ(node->requested_device(), device) << name;
  }
}

TEST(SaverTest, AMapGivesVariablesOtherNamesAndLeavesOthersOut) {
  const TemporaryFolder folder;
  SavingProgram p;
  const Variable a("a", Row({1})), b("b", Row({2})), c("c", Row({3}));
  Saver saver({.variables = {{"first", a}, {"second", b.ref()}}});
  ASSERT_OK(p.Start());
  ASSERT_OK(saver.Save(*p.session, folder / "m"));
  const auto reader = BundleReader::Open(folder / "m");
  ASSERT_OK(reader);
  EXPECT_THAT((*reader)->names(), ElementsAre("first", "second"));
}

TEST(SaverTest, LocalVariablesAreNotSaved) {
  const TemporaryFolder folder;
  SavingProgram p;
  const Variable a("a", Row({1})), count("count", Row({2}), {.local = true});
  Saver saver;
  ASSERT_OK(p.Start());
  ASSERT_OK(saver.Save(*p.session, folder / "m"));
  EXPECT_THAT((*BundleReader::Open(folder / "m"))->names(), ElementsAre("a"));
}

/// The rows 0 to 11 of [12, 2] as `parts` variables, of one kind or alternately of both.
std::vector<Variable> Partitioned(int parts, float first, const std::string& name = "table") {
  std::vector<Variable> variables;
  const int64_t rows = 12 / parts;
  for (int i = 0; i < parts; ++i) {
    std::vector<float> values;
    for (int64_t k = 0; k < rows * 2; ++k) {
      values.push_back(first + static_cast<float>(i * rows * 2 + k));
    }
    Tensor value = Tensor::Of<float>({rows, 2}, values);
    VariableOptions options;
    options.resource = i % 2 == 1;
    options.part = VariablePart{name, {12, 2}, {i * rows, 0}, {rows, 2}};
    variables.emplace_back(StrCat(name, "/part_", i), value, options);
  }
  return variables;
}

TEST(SaverTest, PartsAreSavedAsOneVariableAndRestoredUnderAnotherNumber) {
  const TemporaryFolder folder;
  {
    SavingProgram p;
    Partitioned(3, 0);
    Saver saver;
    ASSERT_OK(p.Start());
    ASSERT_OK(saver.Save(*p.session, folder / "m"));
  }
  EXPECT_THAT((*BundleReader::Open(folder / "m"))->names(), ElementsAre("table"));
  for (const int parts : {1, 2, 4, 6}) {
    SavingProgram p;
    const std::vector<Variable> variables = Partitioned(parts, 1000);
    const Saver saver;
    ASSERT_OK(p.Start());
    ASSERT_OK(saver.Restore(*p.session, folder / "m"));
    float next = 0;
    for (const Variable& part : variables) {
      for (const float v : p.Value(part).flat<float>()) EXPECT_EQ(v, next++);
    }
    EXPECT_EQ(next, 24);
  }
  // Under another name, which all parts share, into a variable that is whole.
  SavingProgram p;
  const Variable whole("whole", Zeros({12, 2}));
  const Saver saver({.variables = {{"table", whole}}});
  ASSERT_OK(p.Start());
  ASSERT_OK(saver.Restore(*p.session, folder / "m"));
  EXPECT_EQ(p.Value(whole).flat<float>()[23], 23);
}

TEST(SaverTest, OldCheckpointsGoAndTheStateFileSaysWhichThereAre) {
  const TemporaryFolder folder;
  SavingProgram p;
  const Variable v("v", Row({1}));
  Saver saver({.max_to_keep = 2});
  ASSERT_OK(p.Start());
  for (int step = 1; step <= 4; ++step) {
    ASSERT_OK(saver.Save(*p.session, folder / "m", {.global_step = step}));
    EXPECT_EQ(*LatestCheckpoint(folder.path()), folder / StrCat("m-", step));
  }
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(folder / "m-3", folder / "m-4"));
  EXPECT_THAT(NamesIn(folder.path()),
              ElementsAre("checkpoint", "m-3.data-00000-of-00001", "m-3.index", "m-3.meta",
                          "m-4.data-00000-of-00001", "m-4.index", "m-4.meta"));
  EXPECT_EQ(
      ContentOf(folder / "checkpoint"),
      StrCat("model_checkpoint_path: \"", folder / "m-4", "\"\nall_model_checkpoint_paths: \"",
             folder / "m-3", "\"\nall_model_checkpoint_paths: \"", folder / "m-4", "\"\n"));
  // After a restart it knows them again.
  Saver later({.max_to_keep = 2, .name = "later"});
  ASSERT_OK(p.session->Extend(p.graph));
  later.RecoverLastCheckpoints(GetCheckpointState(folder.path())->all);
  later.RecoverLastCheckpoints({folder / "none", folder / "m-3", folder / "m-4"});
  EXPECT_THAT(later.last_checkpoints(), ElementsAre(folder / "m-3", folder / "m-4"));
  ASSERT_OK(later.Save(*p.session, folder / "m", {.global_step = 5, .write_meta_graph = false}));
  EXPECT_FALSE(CheckpointExists(folder / "m-3"));
  EXPECT_FALSE(FileExists(folder / "m-5.meta"));
  EXPECT_TRUE(CheckpointExists(folder / "m-4"));
}

TEST(SaverTest, AllCheckpointsStayWhenThereIsNoLimit) {
  const TemporaryFolder folder;
  SavingProgram p;
  const Variable v("v", Row({1}));
  Saver saver({.max_to_keep = 0});
  ASSERT_OK(p.Start());
  for (int step = 1; step <= 7; ++step) {
    ASSERT_OK(saver.Save(*p.session, folder / "m", {.global_step = step}));
  }
  for (int step = 1; step <= 7; ++step) EXPECT_TRUE(CheckpointExists(folder / StrCat("m-", step)));
  EXPECT_THAT(GetCheckpointState(folder.path())->all, ElementsAre(folder / "m-7"));
}

TEST(SaverTest, OneCheckpointEachSoManyHoursStays) {
  const TemporaryFolder folder;
  SavingProgram p;
  const Variable v("v", Row({1}));
  // Each save is later than the next of these moments, until the one that an hour adds.
  Saver all({.max_to_keep = 1, .keep_checkpoint_every_n_hours = 0});
  Saver none({.max_to_keep = 1, .keep_checkpoint_every_n_hours = 1, .name = "none"});
  ASSERT_OK(p.Start());
  for (int step = 1; step <= 3; ++step) {
    ASSERT_OK(all.Save(*p.session, folder / "all/m", {.global_step = step}));
    ASSERT_OK(none.Save(*p.session, folder / "none/m", {.global_step = step}));
  }
  for (const int step : {1, 2, 3}) {
    EXPECT_TRUE(CheckpointExists(folder / StrCat("all/m-", step))) << step;
    EXPECT_EQ(CheckpointExists(folder / StrCat("none/m-", step)), step == 3) << step;
  }
}

TEST(SaverTest, TheSamePrefixIsReplaced) {
  const TemporaryFolder folder;
  SavingProgram p;
  const Variable v("v", Row({1, 2}));
  Node* const add = AssignAdd(v.ref(), Row({1, 1})).node;
  Saver saver;
  ASSERT_OK(p.Start());
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(saver.Save(*p.session, folder / "m"));
    const Tensor saved = p.Value(v);
    ASSERT_OK(p.session->Run({}, {}, {add}));
    ASSERT_OK(saver.Restore(*p.session, folder / "m"));
    EXPECT_TRUE(p.Value(v).Equals(saved));
    ASSERT_OK(p.session->Run({}, {}, {add}));
  }
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(folder / "m"));
}

TEST(SaverTest, WhatUnfinishedSavesToThePathLeftGoesAndNothingElse) {
  const TemporaryFolder folder;
  SavingProgram p;
  const Variable v("v", Row({1}));
  Saver saver;
  ASSERT_OK(p.Start());
  const std::vector<std::string> unfinished = {"m.data-00000-of-00001.tempstate1_2",
                                               "m-3.index.tempstate1_2", "m-12.meta.tempstate0_0",
                                               "m-4_temp/part-00000-of-00002.index"};
  const std::vector<std::string> others = {"m2-1.index.tempstate1_2", "my_temp/file",
                                           "m-3.tempstate", "m.txt", "m-a_temp"};
  for (const auto* names : {&unfinished, &others}) {
    for (const std::string& name : *names) {
      ASSERT_OK(MakeFolders(FolderOf(folder / name)));
      ASSERT_OK(WriteStringToFile(folder / name, "x"));
    }
  }
  ASSERT_OK(saver.Save(*p.session, folder / "m", {.global_step = 5}));
  for (const std::string& name : unfinished) EXPECT_FALSE(FileExists(folder / name)) << name;
  EXPECT_FALSE(FileExists(folder / "m-4_temp"));
  for (const std::string& name : others) EXPECT_TRUE(FileExists(folder / name)) << name;
}

TEST(SaverTest, PathsOfAMovedDirectoryAreRelative) {
  const TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  SavingProgram p;
  const Variable v("v", Row({1}));
  Saver saver;
  ASSERT_OK(p.Start());
  ASSERT_OK(saver.Save(*p.session, "run/m", {.global_step = 1}));
  ASSERT_OK(saver.Save(*p.session, "run/m", {.global_step = 2}));
  EXPECT_THAT(ContentOf("run/checkpoint"), HasSubstr("model_checkpoint_path: \"m-2\"\n"));
  std::filesystem::current_path(before);
  EXPECT_EQ(*LatestCheckpoint(folder / "run"), folder / "run/m-2");
}

TEST(SaverTest, MistakesSayWhatIsWrong) {
  const TemporaryFolder folder;
  const auto mistake = [](const std::function<void(SavingProgram&)>& build) {
    SavingProgram p;
    build(p);
    return p.graph.error();
  };
  EXPECT_THAT(mistake([](SavingProgram&) { const Saver saver; }),
              IsError(kInvalid, "there is no variable to save"));
  EXPECT_OK(mistake([](SavingProgram&) { const Saver saver({.allow_empty = true}); }));
  EXPECT_THAT(mistake([](SavingProgram&) {
                const Output c = Const(1.0f, {.name = "c"});
                const Saver saver({.variables = {{"name", c}}});
              }),
              IsError(kInvalid, "what is to be saved as 'name' is no variable of the graph: 'c'"));
  EXPECT_THAT(mistake([](SavingProgram&) {
                const Variable a("a", Row({1})), b("b", Row({1}));
                const Saver saver({.variables = {{"x", a}, {"x", b}}});
              }),
              IsError(kInvalid, "two variables are to be saved as 'x'"));
  SavingProgram p;
  const Variable a("a", Row({1})), r("r", Row({1}), {.resource = true});
  Saver saver;
  auto session = MakeLocalSession(p.graph);
  ASSERT_OK(session);
  EXPECT_THAT(saver.Save(**session, folder / "m"),
              IsError(StatusCode::kFailedPrecondition, "cannot save"));
  EXPECT_FALSE(FileExists(folder / "checkpoint"));
  ASSERT_OK(p.Start());
  EXPECT_THAT(saver.Save(*p.session, folder / ""), IsError(kInvalid, "must end in a name"));
  EXPECT_THAT(saver.Save(*p.session, folder / "checkpoint"), IsError(kInvalid, "the same name"));
  EXPECT_THAT(saver.Restore(*p.session, folder / "none"),
              IsError(StatusCode::kNotFound, folder / "none"));
  EXPECT_THAT(LatestCheckpoint(folder.path()), IsError(StatusCode::kNotFound, "checkpoint"));
  ASSERT_OK(WriteStringToFile(folder / "checkpoint", "no: such file"));
  EXPECT_THAT(LatestCheckpoint(folder.path()), IsError(StatusCode::kDataLoss, "is not the state"));
  ASSERT_OK(UpdateCheckpointState(folder.path(), {folder / "gone", {}}));
  EXPECT_THAT(LatestCheckpoint(folder.path()), IsError(StatusCode::kNotFound, "is not there"));
}

TEST(SaverTest, AShapeOrDtypeThatDiffersIsRefused) {
  const TemporaryFolder folder;
  {
    SavingProgram p;
    const Variable a("a", Row({1, 2})), r("r", Row({1, 2}));
    Saver saver;
    ASSERT_OK(p.Start());
    ASSERT_OK(saver.Save(*p.session, folder / "m"));
  }
  for (const bool resource : {false, true}) {
    SavingProgram p;
    const Variable other("a", Row({1, 2, 3}), {.resource = resource});
    const Variable ints("r", Tensor::Vector<int32_t>({1, 2}), {.resource = resource});
    const Variable missing("missing", Row({1}), {.resource = resource});
    const Saver shape({.variables = {{"a", other}}, .name = "shape"});
    const Saver dtype({.variables = {{"r", ints}}, .name = "dtype"});
    const Saver name({.variables = {{"missing", missing}}, .name = "name"});
    ASSERT_OK(p.Start());
    EXPECT_THAT(shape.Restore(*p.session, folder / "m"),
                IsError(kInvalid, "variable 'a': saver_test.cc:"));
    EXPECT_THAT(shape.Restore(*p.session, folder / "m"),
                IsError(kInvalid,
                        "/m' (of another kind: 'a', which is float[3] in the graph and "
                        "float[2] in the checkpoint)"));
    EXPECT_THAT(
        dtype.Restore(*p.session, folder / "m"),
        IsError(kInvalid, "'r', which is int32[2] in the graph and float[2] in the checkpoint"));
    EXPECT_THAT(name.Restore(*p.session, folder / "m.index"),
                IsError(StatusCode::kNotFound, "/m', which is wanted"));
    EXPECT_THAT(dtype.Restore(*p.session, folder / "m"), IsError(kInvalid, "expected dtype int32"));
    EXPECT_THAT(name.Restore(*p.session, folder / "m"),
                IsError(StatusCode::kNotFound, "Key missing not found"));
    EXPECT_THAT(
        name.Restore(*p.session, folder / "m"),
        IsError(StatusCode::kNotFound, "/m' (of 1 variables it lacks missing; it has a, r)"));
  }
}

TEST(SaverTest, AFolderIsNoCheckpoint) {
  const TemporaryFolder folder;
  SavingProgram p;
  const Variable a("a", Row({1, 2}));
  Saver saver;
  ASSERT_OK(p.Start());
  EXPECT_THAT(saver.Restore(*p.session, folder.path()),
              IsError(StatusCode::kFailedPrecondition,
                      "LatestCheckpoint finds the latest one in a folder"));
}

}  // namespace
}  // namespace tenon::testing
