// SPDX-License-Identifier: Apache-2.0
#include "train/saver/saved_model.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "data/checkpoint/meta_graph_file.h"
#include "data/files/file.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/lookup/lookup_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/state/state_ops.h"
#include "runtime/session/local_session.h"
#include "tests/data/sample_files.h"
#include "tests/testing/status_matchers.h"
#include "train/variables.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Key;

class SavedModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const DeviceScope elsewhere("/job:localhost/task:0/device:CPU:0");
    x_ = Placeholder(DType::kFloat, {-1, 2}, {.name = "x"});
    w_ = Variable("w", Tensor::Of<float>({2, 1}, {1, 10}), {.resource = true});
    b_ = Variable("b", Tensor::Vector<float>({100}));
    y_ = MatMul(x_, w_) + b_;
    saver_ = std::make_unique<Saver>();
    Node* const init = GlobalVariablesInitializer();
    auto session = MakeLocalSession(graph_);
    ASSERT_OK(session);
    session_ = *std::move(session);
    ASSERT_OK(session_->Run({}, {}, {init}));
  }
  std::map<std::string, ModelSignature> Signatures() const {
    return {{kDefaultServingSignature, {.inputs = {{"in", x_}}, .outputs = {{"out", y_}}}},
            {"weights", {.inputs = {}, .outputs = {{"w", w_}, {"b", b_}}}}};
  }

  const TemporaryFolder folder_;
  Graph graph_{AllOps()};
  GraphBuilding building_{graph_};
  Output x_, y_;
  Variable w_, b_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<Session> session_;
};

TEST_F(SavedModelTest, AModelIsExportedAndLoaded) {
  const std::string path = folder_ / "model/1";
  ASSERT_OK(ExportSavedModel(*session_, *saver_, path, Signatures()));
  EXPECT_THAT(*ListFolder(folder_ / "model"), ElementsAre("1"));
  EXPECT_THAT(*ListFolder(path), ElementsAre("saved_model.pb", "variables"));
  EXPECT_THAT(*ListFolder(path + "/variables"),
              ElementsAre("variables.data-00000-of-00001", "variables.index"));
  EXPECT_THAT(saver_->last_checkpoints(), ElementsAre());
  auto model = LoadSavedModel(path);
  ASSERT_OK(model);
  EXPECT_THAT(model->signatures, ElementsAre(Key("serving_default"), Key("weights")));
  EXPECT_EQ(model->signatures["serving_default"].inputs["in"].shape, (PartialShape{-1, 2}));
  auto outputs = model->Run({{"in", Tensor::Of<float>({2, 2}, {1, 2, 3, 4})}});
  ASSERT_OK(outputs);
  EXPECT_TRUE((*outputs)["out"].Equals(Tensor::Of<float>({2, 1}, {121, 143})));
  outputs = model->Run({}, "weights");
  ASSERT_OK(outputs);
  EXPECT_TRUE((*outputs)["b"].Equals(Tensor::Vector<float>({100})));
}

TEST_F(SavedModelTest, WhatASignatureDoesNotHaveIsRefused) {
  ASSERT_OK(ExportSavedModel(*session_, *saver_, folder_ / "m", Signatures()));
  auto model = LoadSavedModel(folder_ / "m");
  ASSERT_OK(model);
  const Tensor good = Tensor::Of<float>({1, 2}, {1, 2});
  EXPECT_THAT(model->Run({{"in", good}}, "other"),
              IsError(StatusCode::kNotFound, "no signature 'other', but 'serving_default'"));
  EXPECT_THAT(model->Run({{"x", good}}), IsError(kInvalid, "has no input 'x', but 'in'"));
  EXPECT_THAT(model->Run({}),
              IsError(kInvalid, "input 'in' of signature 'serving_default' is miss"));
  EXPECT_THAT(model->Run({{"in", Tensor::Of<double>({1, 2}, {1, 2})}}),
              IsError(kInvalid, "is float, found double"));
}

TEST_F(SavedModelTest, TheMainOpRunsAfterTheVariablesAreRestored) {
  const Variable twice("twice", Tensor::Vector<float>({0}), {.local = true});
  Node* const main_op = Assign(twice.ref(), b_ * 2.0f).node;
  ASSERT_OK(session_->Extend(graph_));
  auto signatures = Signatures();
  signatures["twice"].outputs["twice"] = twice;
  ASSERT_OK(ExportSavedModel(*session_, *saver_, folder_ / "m", signatures, {.main_op = main_op}));
  auto model = LoadSavedModel(folder_ / "m");
  ASSERT_OK(model);
  auto outputs = model->Run({}, "twice");
  ASSERT_OK(outputs);
  EXPECT_TRUE((*outputs)["twice"].Equals(Tensor::Vector<float>({200})));
}

/// A table of the words of a file, which a main op reads.
class SavedModelAssetsTest : public SavedModelTest {
 protected:
  /// The words that the file at `path` has go into a table.
  Node* AddTable(const Input& path, const std::string& name) {
    const Output words = Const(path, {.name = name});
    graph_.Collection("asset_filepaths").push_back(words);
    const Output table = HashTableV2(DType::kString, DType::kInt64, {.shared_name = name});
    ids_.push_back(LookupTableFindV2(table, word_, Const(int64_t{-1}, {.dtype = DType::kInt64})));
    return InitializeTableFromTextFileV2(table, words, -2, -1);
  }
  Status Export(const std::vector<Output>& fills) {
    std::map<std::string, Output> outputs;
    for (size_t i = 0; i < ids_.size(); ++i) outputs[StrCat("id", i)] = ids_[i];
    const ControlDependencies after(fills);
    Node* const main_op = NoOp({.name = "init_all_tables"});
    TENON_RETURN_IF_ERROR(session_->Extend(graph_));
    return ExportSavedModel(*session_, *saver_, folder_ / "m",
                            {{kDefaultServingSignature, {{{"word", word_}}, outputs}}},
                            {.main_op = main_op});
  }
  std::string Write(const std::string& path, std::string_view words) {
    EXPECT_OK(MakeFolders(FolderOf(folder_ / path)));
    EXPECT_OK(WriteStringToFile(folder_ / path, words));
    return folder_ / path;
  }

  const Output word_ = Placeholder(DType::kString, {-1}, {.name = "word"});
  std::vector<Output> ids_;
};

TEST_F(SavedModelAssetsTest, FilesOfTheCollectionGoWithTheModel) {
  const std::string one = Write("a/words.txt", "zero\none\ntwo\n"),
                    other = Write("b/words.txt", "two\none\n"),
                    large = Write("c/large", [] {
                      std::string lines;
                      for (int i = 0; i < 300000; ++i) StrAppend(&lines, "word", i, "\n");
                      return lines;
                    }());
  ASSERT_OK(Export(
      {AddTable(one, "x1"), AddTable(other, "x2"), AddTable(one, "x3"), AddTable(large, "x4")}));
  for (const std::string& path : {one, other, large}) ASSERT_OK(RemoveFile(path));
  EXPECT_THAT(*ListFolder(folder_ / "m"), ElementsAre("assets", "saved_model.pb", "variables"));
  EXPECT_THAT(*ListFolder(folder_ / "m/assets"), ElementsAre("large", "words.txt", "words.txt_1"));
  ASSERT_OK(RenameFile(folder_ / "m", folder_ / "moved"));
  auto model = LoadSavedModel(folder_ / "moved");
  ASSERT_OK(model);
  auto found = model->Run({{"word", Tensor::Vector<std::string>({"one", "two", "word299999"})}});
  ASSERT_OK(found);
  EXPECT_TRUE((*found)["id0"].Equals(Tensor::Vector<int64_t>({1, 2, -1})));
  EXPECT_TRUE((*found)["id1"].Equals(Tensor::Vector<int64_t>({1, 0, -1})));
  EXPECT_TRUE((*found)["id2"].Equals(Tensor::Vector<int64_t>({1, 2, -1})));
  EXPECT_TRUE((*found)["id3"].Equals(Tensor::Vector<int64_t>({-1, -1, 299999})));
}

TEST_F(SavedModelAssetsTest, WhatIsNoFileIsRefusedAndLeavesNothingBehind) {
  Node* const fill = AddTable(folder_ / "gone.txt", "x1");
  EXPECT_THAT(Export({fill}), IsError(StatusCode::kNotFound, "the asset of 'x1:0'"));
  EXPECT_THAT(*ListFolder(folder_.path()), ElementsAre());
  std::vector<Endpoint>& assets = graph_.Collection("asset_filepaths");
  assets = {Output(Placeholder(DType::kString, Shape(), {.name = "later"}))};
  EXPECT_THAT(Export({fill}), IsError(kInvalid,
                                      "'later' (Placeholder) of the collection "
                                      "'asset_filepaths' is string[], wanted a Const"));
  assets = {Output(Const({"a", "b"}, {.name = "two"}))};
  EXPECT_THAT(Export({fill}), IsError(kInvalid, "'two' (Const) of the collection"));
  assets = {Output(Const(3, {.name = "three"}))};
  EXPECT_THAT(Export({fill}), IsError(kInvalid, "is int32[], wanted a Const of one text"));
  assets = {Output(Const("folder/", {.name = "folder"}))};
  EXPECT_THAT(Export({fill}), IsError(kInvalid, "is 'folder/', wanted the path of a file"));
}

TEST_F(SavedModelTest, AModelWithoutVariablesHasNoCheckpoint) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output x = Placeholder(DType::kFloat, Shape(), {.name = "x"});
  const Output y = x * 2.0f;
  Saver saver({.allow_empty = true});
  auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  ASSERT_OK(ExportSavedModel(**session, saver, folder_ / "m/",
                             {{kDefaultServingSignature, {{{"x", x}}, {{"y", y}}}}}));
  EXPECT_THAT(*ListFolder(folder_ / "m"), ElementsAre("saved_model.pb"));
  auto model = LoadSavedModel(folder_ / "m");
  ASSERT_OK(model);
  EXPECT_EQ((*model->Run({{"x", Tensor::Scalar(4.0f)}}))["y"].scalar<float>(), 8);
}

TEST_F(SavedModelTest, MistakesLeaveNothingBehind) {
  Graph other(AllOps());
  {
    const GraphBuilding building(other);
    const Output foreign = Const(1.0f, {.name = "foreign"});
    EXPECT_THAT(ExportSavedModel(*session_, *saver_, folder_ / "m",
                                 {{"s", {.inputs = {}, .outputs = {{"y", foreign}}}}}),
                IsError(kInvalid, "signature 's': 'y' is no tensor of the graph"));
  }
  auto closed = MakeLocalSession(graph_);  // whose variables have no values
  ASSERT_OK(closed);
  EXPECT_FALSE(ExportSavedModel(**closed, *saver_, folder_ / "m", Signatures()).ok());
  EXPECT_THAT(*ListFolder(folder_.path()), ElementsAre());
  ASSERT_OK(ExportSavedModel(*session_, *saver_, folder_ / "m", Signatures()));
  EXPECT_THAT(ExportSavedModel(*session_, *saver_, folder_ / "m", Signatures()),
              IsError(StatusCode::kAlreadyExists, "it is there already"));
  EXPECT_THAT(LoadSavedModel(folder_ / "n"), IsError(StatusCode::kNotFound, "n"));
  EXPECT_THAT(LoadSavedModel(folder_ / "m", {.tags = {"train"}}),
              IsError(StatusCode::kNotFound, "train"));
}

}  // namespace
}  // namespace tenon::testing
