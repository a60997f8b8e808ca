// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "ops/array/array_ops.h"
#include "ops/lookup/lookup_ops.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

Tensor TextKeys(const std::vector<std::string>& texts) { return Tensor::Vector(texts); }
Tensor Ints(const std::vector<int64_t>& values) { return Tensor::Vector(values); }

class LookupOpsTest : public ::testing::Test {
 protected:
  LookupOpsTest() : building_(graph_) {}

  /// Builds the operations on a table of texts and int64, after which nothing may be built.
  void Use(const Output& table) {
    initialize_ = InitializeTableV2(table, keys_, values_);
    insert_ = LookupTableInsertV2(table, keys_, values_);
    import_ = LookupTableImportV2(table, keys_, values_);
    remove_ = LookupTableRemoveV2(table, keys_);
    find_ = LookupTableFindV2(table, keys_, fallback_);
    size_ = LookupTableSizeV2(table);
    export_ = LookupTableExportV2(table, DType::kString, DType::kInt64);
    auto session = MakeLocalSession(graph_);
    ASSERT_OK(session);
    session_ = *std::move(session);
  }
  Status Change(Node* how, const std::vector<std::string>& keys,
                const std::vector<int64_t>& values = {}) {
    return session_->Run({{keys_, TextKeys(keys)}, {values_, Ints(values)}}, {}, {how}).status();
  }
  StatusOr<Tensor> Find(const Tensor& keys, const Tensor& fallback) {
    TENON_ASSIGN_OR_RETURN(const auto values,
                           session_->Run({{keys_, keys}, {fallback_, fallback}}, {find_}));
    return values[0];
  }
  std::vector<double> Found(const std::vector<std::string>& keys) {
    const auto values = Find(TextKeys(keys), Tensor::Scalar<int64_t>(-1));
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? Numbers(*values) : std::vector<double>();
  }
  int64_t Size() { return (*session_->Run({}, {size_}))[0].scalar<int64_t>(); }

  Graph graph_{AllOps()};
  GraphBuilding building_;
  Output keys_ = Placeholder(DType::kString), values_ = Placeholder(DType::kInt64);
  Output fallback_ = Placeholder(DType::kInt64);
  Node *initialize_ = nullptr, *insert_ = nullptr, *import_ = nullptr, *remove_ = nullptr;
  Output find_, size_;
  LookupTableExportV2Outputs export_;
  std::unique_ptr<Session> session_;
};

TEST_F(LookupOpsTest, ATableThatIsFilledOnce) {
  Use(HashTableV2(DType::kString, DType::kInt64));
  EXPECT_EQ(Size(), 0);
  EXPECT_THAT(Find(TextKeys({"a"}), Tensor::Scalar<int64_t>(0)),
              IsError(StatusCode::kFailedPrecondition, "Table not initialized."));
  EXPECT_THAT(Change(initialize_, {"a", "b", "a"}, {1, 2, 3}),
              IsError(StatusCode::kFailedPrecondition,
                      "HashTable has different value for same key. Key a"));
  ASSERT_OK(Change(initialize_, {"a", "b", "a"}, {1, 2, 1}));
  EXPECT_THAT(Found({"b", "z", "a"}), ElementsAre(2, -1, 1));
  EXPECT_EQ(Size(), 2);
  // A second worker fills it as well.
  ASSERT_OK(Change(initialize_, {"a", "b"}, {1, 2}));
  EXPECT_THAT(Change(initialize_, {"a"}, {1}),
              IsError(StatusCode::kFailedPrecondition, "it has 2 entries, now 1 are given"));
  EXPECT_THAT(Change(insert_, {"c"}, {3}), IsError(StatusCode::kUnimplemented, "Insert"));
  EXPECT_THAT(Change(remove_, {"c"}), IsError(StatusCode::kUnimplemented, "Remove"));
}

TEST_F(LookupOpsTest, ATableThatChanges) {
  Use(MutableHashTableV2(DType::kString, DType::kInt64));
  EXPECT_THAT(Found({"a"}), ElementsAre(-1));
  std::vector<std::string> keys;
  std::vector<int64_t> values;
  for (int i = 0; i < 100; ++i) {
    keys.push_back(StrCat("key", i));
    values.push_back(i);
  }
  ASSERT_OK(Change(insert_, keys, values));
  ASSERT_OK(Change(insert_, {"key7", "new"}, {70, 100}));
  ASSERT_OK(Change(remove_, {"key0", "key99", "none", "key50"}));
  EXPECT_EQ(Size(), 98);
  EXPECT_THAT(Found({"key0", "key1", "key7", "key50", "key98", "key99", "new"}),
              ElementsAre(-1, 1, 70, -1, 98, -1, 100));
  ASSERT_OK(Change(import_, {"x", "y", "x"}, {1, 2, 3}));
  const auto all = session_->Run({}, {export_.keys, export_.values});
  ASSERT_OK(all);
  EXPECT_THAT((*all)[0].flat<TString>(), ElementsAre("x", "y"));
  EXPECT_THAT(Numbers((*all)[1]), ElementsAre(3, 2));
}

TEST_F(LookupOpsTest, KeysOfAnyShapeAndADefaultForEach) {
  Use(MutableHashTableV2(DType::kString, DType::kInt64));
  ASSERT_OK(Change(insert_, {"a"}, {1}));
  const Tensor keys = Tensor::Of<std::string>({2, 2}, {"a", "b", "c", "a"});
  const auto found = Find(keys, Tensor::Of<int64_t>({2, 2}, {10, 20, 30, 40}));
  ASSERT_OK(found);
  EXPECT_EQ(found->shape(), (Shape{2, 2}));
  EXPECT_THAT(Numbers(*found), ElementsAre(1, 20, 30, 1));
  EXPECT_THAT(Find(keys, Ints({1, 2})),
              IsError(StatusCode::kInvalidArgument, "for default value, got [2]"));
}

TEST_F(LookupOpsTest, ValuesMayBeTensorsAndKeysNumbers) {
  const Output table = MutableHashTableOfTensorsV2(DType::kInt64, DType::kFloat, PartialShape{2});
  Node* const insert =
      LookupTableInsertV2(table, Ints({5, -3}), Tensor::Of<float>({2, 2}, {1, 2, 3, 4}));
  const Output find = LookupTableFindV2(table, Ints({-3, 0}), Tensor::Vector<float>({8, 9}));
  Use(MutableHashTableV2(DType::kString, DType::kInt64));
  ASSERT_OK(session_->Run({}, {}, {insert}));
  const auto found = session_->Run({}, {find});
  ASSERT_OK(found);
  EXPECT_THAT(Numbers((*found)[0]), ElementsAre(3, 4, 8, 9));
}

TEST_F(LookupOpsTest, WhatDoesNotFitIsRefused) {
  const Output wrong_type = LookupTableFindV2(
      MutableHashTableV2(DType::kString, DType::kFloat, {.shared_name = "t"}), keys_, fallback_);
  const Output other = MutableHashTableV2(DType::kInt64, DType::kFloat, {.shared_name = "t"});
  Use(MutableHashTableV2(DType::kString, DType::kInt64));
  EXPECT_THAT(Change(insert_, {"a", "b"}, {1}),
              IsError(StatusCode::kInvalidArgument, "Expected shape [2] for value, got [1]"));
  EXPECT_THAT(session_->Run({{keys_, TextKeys({"a"})}, {fallback_, Tensor::Scalar<int64_t>(0)}},
                            {wrong_type}),
              IsError(StatusCode::kInvalidArgument, "dtypes string->int64 with string->float"));
  EXPECT_THAT(session_->Run({}, {other}),
              IsError(StatusCode::kInvalidArgument, "dtypes int64->float with string->float"));
  EXPECT_THAT(Change(initialize_, {"a"}, {1}),
              IsError(StatusCode::kFailedPrecondition, "is not initialized but inserted into"));
}

TEST_F(LookupOpsTest, ImmutableTablesAreOfTensorFlowsKeysAndValues) {
  const Output wrong = HashTableV2(DType::kInt32, DType::kInt64);
  const Output right = LookupTableSizeV2(HashTableV2(DType::kInt32, DType::kInt32));
  Use(HashTableV2(DType::kString, DType::kInt64));
  EXPECT_THAT(session_->Run({}, {wrong}),
              IsError(StatusCode::kInvalidArgument, "No OpKernel was registered"));
  EXPECT_OK(session_->Run({}, {right}));
  for (Node* const fill : {initialize_, import_}) {
    EXPECT_THAT(Change(fill, {}, {}),
                IsError(StatusCode::kInvalidArgument, "keys and values cannot be empty"));
  }
}

TEST_F(LookupOpsTest, TextFilesFillATable) {
  const std::string path = StrCat(::testing::TempDir(), "lookup_ops_test.txt");
  std::ofstream(path) << "ant,3\nbee,14\r\ncat,15\n";
  const Output table = HashTableV2(DType::kString, DType::kInt64);
  const auto fill = [&](const Output& t, int64_t key, int64_t value, int64_t vocab_size = -1) {
    return InitializeTableFromTextFileV2(t, path, key, value,
                                         {.vocab_size = vocab_size, .delimiter = ",", .offset = 5});
  };
  const auto fresh = [] { return HashTableV2(DType::kString, DType::kInt64); };
  Node* const fields = fill(table, 0, 1);
  const Output numbered = fresh();
  Node* const lines = fill(numbered, -2, -1, 2);
  const Output by_line = LookupTableFindV2(numbered, keys_, fallback_);
  Node* const many = fill(fresh(), 0, 1, 4);
  Node* const missing = fill(fresh(), 0, 2);
  Node* const no_number = fill(fresh(), 1, 0);
  Use(table);
  ASSERT_OK(session_->Run({}, {}, {fields, lines}));
  EXPECT_THAT(Found({"bee", "cat", "dog"}), ElementsAre(14, 15, -1));
  const auto numbers = session_->Run(
      {{keys_, TextKeys({"bee,14", "cat,15"})}, {fallback_, Tensor::Scalar<int64_t>(0)}},
      {by_line});
  ASSERT_OK(numbers);
  EXPECT_THAT(Numbers((*numbers)[0]), ElementsAre(6, 0));
  const auto fails = [&](Node* node, std::string_view message) {
    EXPECT_THAT(session_->Run({}, {}, {node}), IsError(StatusCode::kInvalidArgument, message));
  };
  fails(many, "expected 4 but got 3");
  fails(missing, "expected at least 3, found 2");
  fails(no_number, "Field ant in line 0 is not a valid int64.");
  std::ofstream(path) << "ant,3\n\n";
  fails(no_number, "empty line found at position 1");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tenon::testing
