// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "data/checkpoint/tensor_bundle.h"
#include "data/files/file.h"
#include "ops/array/constants.h"
#include "ops/io/io_ops.h"
#include "ops/register.h"
#include "ops/summary/summary_ops.h"
#include "runtime/session/local_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using Texts = std::vector<std::string>;

class IoOpsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder = (std::filesystem::temp_directory_path() / "tenon_io_XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  Tensor Path(const std::string& name) const { return Tensor::Scalar(folder + "/" + name); }
  static Tensor List(const Texts& texts) { return Tensor::Vector(texts); }

  Status Save(const Tensor& prefix, const Texts& names, const Texts& specs,
              const std::vector<Tensor>& values) {
    std::vector<Tensor> inputs = {prefix, List(names), List(specs)};
    inputs.insert(inputs.end(), values.begin(), values.end());
    return RunOp("SaveV2", inputs).status;
  }
  OpResult Restore(const Tensor& prefix, const Texts& names, const Texts& specs,
                   const DTypeVector& types) {
    return RunOp("RestoreV2", {prefix, List(names), List(specs)}, {{"dtypes", types}});
  }

  std::string folder;
};

TEST_F(IoOpsTest, FilesAreWrittenAndRead) {
  ASSERT_OK(RunOp("WriteFile", {Path("deep/er/f"), Tensor::Scalar("content")}).status);
  EXPECT_EQ(RunOpOrDie("ReadFile", {Path("deep/er/f")}).scalar<TString>(), "content");
  EXPECT_THAT(RunOp("ReadFile", {Path("none")}).status, IsError(StatusCode::kNotFound, "none"));
}

TEST_F(IoOpsTest, TensorsAreSavedAndRestored) {
  const Tensor a = Tensor::Of<float>({2, 2}, {1, 2, 3, 4}),
               b = Tensor::Vector<std::string>({"x", ""});
  ASSERT_OK(Save(Path("m"), {"a", "scope/b"}, {"", ""}, {a, b}));
  const OpResult restored =
      Restore(Path("m"), {"scope/b", "a"}, {"", ""}, {DType::kString, DType::kFloat});
  ASSERT_OK(restored.status);
  EXPECT_TRUE(restored.outputs[0].Equals(b));
  EXPECT_TRUE(restored.outputs[1].Equals(a));
}

TEST_F(IoOpsTest, SlicesOfATensorAreSavedAndRestored) {
  const Tensor top = Tensor::Of<float>({1, 2}, {1, 2}),
               rest = Tensor::Of<float>({2, 2}, {3, 4, 5, 6});
  ASSERT_OK(Save(Path("m"), {"p", "p"}, {"3 2 0,1:-", "3 2 1,2:-"}, {top, rest}));
  const OpResult whole =
      Restore(Path("m"), {"p", "p"}, {"", "3 2 -:1,1"}, {DType::kFloat, DType::kFloat});
  ASSERT_OK(whole.status);
  EXPECT_TRUE(whole.outputs[0].Equals(Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6})));
  EXPECT_TRUE(whole.outputs[1].Equals(Tensor::Of<float>({3, 1}, {2, 4, 6})));
  EXPECT_EQ(whole.declared_shapes[1], (PartialShape{3, 1}));
}

TEST_F(IoOpsTest, WhatDoesNotFitIsRefused) {
  const Tensor a = Tensor::Vector<float>({1, 2});
  EXPECT_THAT(Save(Path("m"), {"a"}, {"4 0,1"}, {a}),
              IsError(StatusCode::kInvalidArgument, "does not match the shape of the tensor"));
  EXPECT_THAT(Save(Path("m"), {"a", "b"}, {""}, {a}),
              IsError(StatusCode::kInvalidArgument, "tensor_names must be a vector of 1 elements"));
  ASSERT_OK(Save(Path("m"), {"a"}, {""}, {a}));
  EXPECT_THAT(Restore(Path("m"), {"a"}, {""}, {DType::kInt32}).status,
              IsError(StatusCode::kInvalidArgument,
                      "expected dtype int32 does not equal original "
                      "dtype float"));
  EXPECT_THAT(Restore(Path("m"), {"b"}, {""}, {DType::kFloat}).status,
              IsError(StatusCode::kNotFound, "Key b not found in checkpoint"));
  EXPECT_THAT(Restore(Path("m"), {"a"}, {"3 0,1"}, {DType::kFloat}).status,
              IsError(StatusCode::kInvalidArgument, "does not match the shape stored"));
  EXPECT_THAT(Restore(Path("none"), {"a"}, {""}, {DType::kFloat}).status,
              IsError(StatusCode::kNotFound, "none"));
}

TEST_F(IoOpsTest, CheckpointsAreMergedAndTheirFolderRemoved) {
  const Tensor a = Tensor::Vector<float>({1}), b = Tensor::Vector<float>({2});
  ASSERT_OK(Save(Path("m_temp/part-00000-of-00002"), {"a"}, {""}, {a}));
  ASSERT_OK(Save(Path("m_temp/part-00001-of-00002"), {"b"}, {""}, {b}));
  const Tensor parts =
      List({folder + "/m_temp/part-00000-of-00002", folder + "/m_temp/part-00001-of-00002"});
  ASSERT_OK(RunOp("MergeV2Checkpoints", {parts, Path("m")}).status);
  const OpResult merged = Restore(Path("m"), {"b", "a"}, {"", ""}, {DType::kFloat, DType::kFloat});
  ASSERT_OK(merged.status);
  EXPECT_TRUE(merged.outputs[0].Equals(b));
  EXPECT_FALSE(std::filesystem::exists(folder + "/m_temp"));
}

/// Each op on files in a session that may reach `files` only: the errors by op.
std::map<std::string, Status> TryOps(const FileAccess& files, const std::string& path) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output name = Const(path), texts = Const(std::vector<std::string>{""});
  const Output value = Const(1.0f), names = Const(std::vector<std::string>{"a"});
  WriteFile(name, Const("x"), {.name = "WriteFile"});
  ReadFile(name, {.name = "ReadFile"});
  SaveV2(name, names, texts, {value}, {.name = "SaveV2"});
  RestoreV2(name, names, texts, {DType::kFloat}, {.name = "RestoreV2"});
  MergeV2Checkpoints(Const(std::vector<std::string>{path}), Const(path + "_merged"),
                     {.name = "MergeV2Checkpoints"});
  CreateSummaryFileWriter(SummaryWriter(), Const(path + "_events"), 10, 1000, Const(""),
                          {.name = "CreateSummaryFileWriter"});
  LocalSessionOptions options;
  options.files = files;
  auto session = MakeLocalSession(graph, options);
  EXPECT_OK(session);
  std::map<std::string, Status> results;
  for (const char* op : {"WriteFile", "ReadFile", "SaveV2", "RestoreV2", "MergeV2Checkpoints",
                         "CreateSummaryFileWriter"}) {
    results[op] = (*session)->Run({}, {}, {op}).status();
  }
  return results;
}

TEST_F(IoOpsTest, EveryOpIsConfinedToTheRoot) {
  const std::string root = folder + "/root";
  std::filesystem::create_directory(root);
  const FileAccess files{FileAccess::Kind::kRoot, root};
  for (const auto& [op, status] : TryOps(files, "sub/m")) EXPECT_OK(status) << op;
  EXPECT_TRUE(std::filesystem::exists(root + "/sub/m_merged.index"));
  for (const std::string& path : {folder + "/m", std::string("../m")}) {
    for (const auto& [op, status] : TryOps(files, path)) {
      EXPECT_THAT(status, IsError(StatusCode::kPermissionDenied, "outside the folder")) << op;
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder + "/m.index"));
}

TEST_F(IoOpsTest, NoOpReachesAFileWhereNoneMayBe) {
  for (const auto& [op, status] : TryOps({FileAccess::Kind::kNone, ""}, folder + "/m")) {
    EXPECT_THAT(status, IsError(StatusCode::kPermissionDenied, folder)) << op;
  }
}

// The functions that read a file now have other names than the ops, which take a path as text too.
TEST_F(IoOpsTest, AFileNamedByALiteralIsReadAndWrittenByTheOps) {
  const std::string path = folder + "/literal";
  Graph graph(AllOps());
  GraphBuilding building(graph);
  Node* const write = WriteFile(path, "three words here");
  const Output read = ReadFile(path);
  const Output none = ReadFile("none.csv");
  ASSERT_OK(building.status());
  const auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {write}));
  EXPECT_EQ((*(*session)->Run({}, {read}))[0].scalar<TString>(), "three words here");
  EXPECT_EQ(*ReadFileToString(path), "three words here");
  EXPECT_THAT((*session)->Run({}, {none}).status(), IsError(StatusCode::kNotFound, "none.csv"));
}

}  // namespace
}  // namespace tenon::testing
