// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/lookup/lookup_ops.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

Tensor Longs(const std::vector<int64_t>& values) { return Tensor::Vector(values); }

/// A table from int64 to int64 with the empty key -1 and the deleted key -2, in four buckets.
class DenseHashTableTest : public ::testing::Test {
 protected:
  DenseHashTableTest() {
    const Output table =
        MutableDenseHashTableV2(Tensor::Scalar<int64_t>(-1), Tensor::Scalar<int64_t>(-2),
                                DType::kInt64, Shape(), {.initial_num_buckets = 4});
    insert_ = LookupTableInsertV2(table, keys_, values_);
    import_ = LookupTableImportV2(table, keys_, values_);
    remove_ = LookupTableRemoveV2(table, keys_);
    find_ = LookupTableFindV2(table, keys_, fallback_);
    size_ = LookupTableSizeV2(table);
    all_ = LookupTableExportV2(table, DType::kInt64, DType::kInt64);
    session_ = *MakeLocalSession(s_.graph);
  }
  Status Change(Node* how, const Tensor& keys, const Tensor& values = Longs({})) {
    return session_->Run({{keys_, keys}, {values_, values}}, {}, {how}).status();
  }
  std::vector<double> Found(const std::vector<int64_t>& keys) {
    const auto found =
        session_->Run({{keys_, Longs(keys)}, {fallback_, Tensor::Scalar<int64_t>(-9)}}, {find_});
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? Numbers((*found)[0]) : std::vector<double>();
  }
  int64_t Size() { return (*session_->Run({}, {size_}))[0].scalar<int64_t>(); }
  std::vector<Tensor> Buckets() { return *session_->Run({}, {all_.keys, all_.values}); }

  GraphSession s_;
  Output keys_ = Placeholder(DType::kInt64), values_ = Placeholder(DType::kInt64);
  Output fallback_ = Placeholder(DType::kInt64);
  Node *insert_ = nullptr, *import_ = nullptr, *remove_ = nullptr;
  Output find_, size_;
  LookupTableExportV2Outputs all_;
  std::unique_ptr<Session> session_;
};

TEST_F(DenseHashTableTest, EntriesComeAreReplacedAndGo) {
  ASSERT_OK(Change(insert_, Longs({10, 11, 14}), Longs({1, 2, 3})));
  ASSERT_OK(Change(insert_, Longs({14, 18}), Longs({30, 4})));
  EXPECT_EQ(Size(), 4);
  EXPECT_THAT(Found({10, 11, 14, 18, 22}), ElementsAre(1, 2, 30, 4, -9));
  ASSERT_OK(Change(remove_, Longs({10, 99})));
  EXPECT_EQ(Size(), 3);
  EXPECT_THAT(Found({10, 14, 18}), ElementsAre(-9, 30, 4));
}

TEST_F(DenseHashTableTest, AKeyBehindARemovedOneIsFoundAndNotDoubled) {
  // All of them belong into bucket 2.
  ASSERT_OK(Change(insert_, Longs({2, 10, 18}), Longs({1, 2, 3})));
  ASSERT_OK(Change(remove_, Longs({2})));
  ASSERT_OK(Change(insert_, Longs({18}), Longs({30})));
  EXPECT_EQ(Size(), 2);
  ASSERT_OK(Change(remove_, Longs({18})));
  EXPECT_THAT(Found({10, 18}), ElementsAre(2, -9));
}

TEST_F(DenseHashTableTest, ManyThatComeAndGoLeaveRoom) {
  for (int64_t i = 0; i < 1000; ++i) {
    ASSERT_OK(Change(insert_, Longs({i}), Longs({i * i})));
    ASSERT_THAT(Found({i, i + 1}), ElementsAre(i * i, -9));
    ASSERT_OK(Change(remove_, Longs({i})));
  }
  EXPECT_EQ(Size(), 0);
  EXPECT_EQ(Buckets()[0].dim(0), 4);
}

TEST_F(DenseHashTableTest, WhatWasExportedStaysAsItWasAndCanBeImported) {
  ASSERT_OK(Change(insert_, Longs({5, 7}), Longs({50, 70})));
  const std::vector<Tensor> before = Buckets();
  EXPECT_EQ(before[0].shape(), (Shape{4, 1}));
  EXPECT_THAT(Numbers(before[0]), ElementsAre(-1, 5, -1, 7));
  EXPECT_THAT(Numbers(before[1]), ElementsAre(0, 50, 0, 70));
  ASSERT_OK(Change(remove_, Longs({5})));
  ASSERT_OK(Change(insert_, Longs({7}), Longs({71})));
  EXPECT_THAT(Numbers(before[0]), ElementsAre(-1, 5, -1, 7));
  EXPECT_THAT(Numbers(before[1]), ElementsAre(0, 50, 0, 70));
  EXPECT_THAT(Numbers(Buckets()[0]), ElementsAre(-1, -2, -1, 7));
  ASSERT_OK(Change(import_, before[0], before[1]));
  EXPECT_EQ(Size(), 2);
  EXPECT_THAT(Found({5, 7}), ElementsAre(50, 70));
}

TEST_F(DenseHashTableTest, WhatIsNoKeyIsRefused) {
  const auto refused = [&](Node* how, const Tensor& keys, const Tensor& values,
                           std::string_view why) {
    EXPECT_THAT(Change(how, keys, values), IsError(StatusCode::kInvalidArgument, why));
  };
  refused(insert_, Longs({1, -1}), Longs({0, 0}), "Using the empty_key as a table key");
  refused(remove_, Longs({-2}), Longs({}), "Using the deleted_key as a table key");
  refused(insert_, Longs({1, 2}), Longs({0}), "Expected shape [2] for value, got [1]");
  const Tensor square = Tensor::Of<int64_t>({2, 2}, {1, 2, 3, 4});
  refused(insert_, square, Longs({0, 0}), "Expected key shape []");
  EXPECT_EQ(Size(), 0);
  const auto matrix = [](int64_t rows, int64_t columns) {
    return Tensor::Zeros(DType::kInt64, {rows, columns});
  };
  refused(import_, matrix(3, 1), matrix(3, 1), "power of 2, got: 3");
  refused(import_, matrix(0, 1), matrix(0, 1), "power of 2, got: 0");
  refused(import_, matrix(4, 2), matrix(4, 1), "Expected key shape [?,1], got [4,2]");
  refused(import_, matrix(4, 1), matrix(4, 2), "Expected shape [4,1] for value, got [4,2]");
  refused(import_, matrix(4, 1), matrix(4, 1), "all of 4 buckets are taken");
}

TEST(DenseHashTablesTest, KeysAndValuesMayBeVectorsAndTexts) {
  GraphSession s;
  const Output table = MutableDenseHashTableV2(
      Tensor::Vector<std::string>({"", ""}), Tensor::Vector<std::string>({"-", "-"}), DType::kFloat,
      PartialShape{3}, {.initial_num_buckets = 4});
  const Tensor keys = Tensor::Of<std::string>({3, 2}, {"a", "b", "b", "a", "", "a"});
  const auto insert =
      LookupTableInsertV2(table, keys, Tensor::Of<float>({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const Tensor asked = Tensor::Of<std::string>({2, 1, 2}, {"b", "a", "c", "c"});
  const Output found = LookupTableFindV2(table, asked, Tensor::Vector<float>({-1, -2, -3}));
  const Output size = LookupTableSizeV2(table);
  ASSERT_OK(s.Run({}, {Output(insert)}));
  const Tensor values = s.Value(found);
  EXPECT_EQ(values.shape(), (Shape{2, 1, 3}));
  EXPECT_THAT(Numbers(values), ElementsAre(4, 5, 6, -1, -2, -3));
  EXPECT_EQ(s.Value(size).scalar<int64_t>(), 3);
}

TEST(DenseHashTablesTest, TheFirstVersionHasNoDeletedKey) {
  GraphSession s;
  const Output table =
      MutableDenseHashTable(int32_t{0}, DType::kInt32, Shape(), {.initial_num_buckets = 4});
  const auto insert = LookupTableInsert(table, Tensor::Vector({1, 5}), Tensor::Vector({10, 50}));
  const Output found = LookupTableFind(table, Tensor::Vector({5, 9}), int32_t{-1});
  ASSERT_OK(s.Run({}, {Output(insert)}));
  EXPECT_THAT(Numbers(s.Value(found)), ElementsAre(50, -1));
}

TEST(DenseHashTablesTest, ATableThatCannotBeIsRefused) {
  const auto refused = [](const Tensor& empty, const Tensor& deleted,
                          const MutableDenseHashTableV2Options& options, std::string_view why,
                          const PartialShape& value_shape = Shape()) {
    GraphSession s;
    const Output size = LookupTableSizeV2(
        MutableDenseHashTableV2(empty, deleted, DType::kInt64, value_shape, options));
    EXPECT_THAT(s.Run({size}).status(), IsError(StatusCode::kInvalidArgument, why));
  };
  const Tensor one = Tensor::Scalar<int64_t>(1), two = Tensor::Scalar<int64_t>(2);
  refused(one, one, {}, "Empty and deleted keys cannot be equal");
  refused(one, Longs({1, 2}), {}, "must have same shape, got shapes: [] and [2]");
  refused(Tensor::Zeros(DType::kInt64, {1, 1}), two, {}, "must be a scalar or a vector");
  refused(one, two, {.initial_num_buckets = 12}, "power of 2, got: 12");
  refused(one, two, {.initial_num_buckets = 2}, "at least 4");
  refused(one, two, {.max_load_factor = 1.5f}, "between 0 and 1, got: 1.5");
  refused(one, two, {}, "must be a scalar or a vector", {2, 2});
  refused(Tensor::Scalar(1.0f), Tensor::Scalar(2.0f), {}, "integers or texts, found float");
}

TEST(AnonymousTableTest, EachRunHasATableOfItsOwnThatItsHandlesKeep) {
  GraphSession s;
  const Output table = AnonymousMutableHashTable(DType::kString, DType::kInt64);
  const Output keys = Placeholder(DType::kString);
  Output size, found;
  {
    const auto insert = LookupTableInsertV2(table, keys, Output(Const(Longs({7}))));
    ControlDependencies after({insert});
    size = LookupTableSizeV2(table);
    found = LookupTableFindV2(table, Const("a"), Tensor::Scalar<int64_t>(-1));
  }
  for (const auto& [key, value] : {std::pair("a", 7), std::pair("b", -1), std::pair("a", 7)}) {
    const auto values =
        s.Run({size, found}, {}, {{keys.name(), Tensor::Vector<std::string>({key})}});
    ASSERT_OK(values);
    EXPECT_EQ((*values)[0].scalar<int64_t>(), 1);
    EXPECT_EQ((*values)[1].scalar<int64_t>(), value);
  }
}

TEST(AnonymousTableTest, TablesOfEveryKind) {
  GraphSession s;
  const Output once = AnonymousHashTable(DType::kInt64, DType::kInt64);
  const Output vectors =
      AnonymousMutableHashTableOfTensors(DType::kInt64, DType::kInt64, PartialShape{2});
  const Output dense = AnonymousMutableDenseHashTable(Tensor::Scalar<int64_t>(-1),
                                                      Tensor::Scalar<int64_t>(-2), DType::kInt64);
  std::vector<Output> found;
  const auto after = [&](Node* fill, const Output& table, const Tensor& fallback) {
    ControlDependencies filled({fill});
    found.push_back(LookupTableFindV2(table, Longs({3, 4}), fallback));
  };
  const Tensor none = Tensor::Scalar<int64_t>(0);
  after(InitializeTableV2(once, Longs({3}), Longs({30})), once, none);
  after(LookupTableInsertV2(vectors, Longs({3}), Tensor::Of<int64_t>({1, 2}, {1, 2})), vectors,
        Longs({0, 0}));
  after(LookupTableInsertV2(dense, Longs({4}), Longs({40})), dense, none);
  const auto values = s.Run(found);
  ASSERT_OK(values);
  EXPECT_THAT(Numbers((*values)[0]), ElementsAre(30, 0));
  EXPECT_THAT(Numbers((*values)[1]), ElementsAre(1, 2, 0, 0));
  EXPECT_THAT(Numbers((*values)[2]), ElementsAre(0, 40));
}

}  // namespace
}  // namespace tenon::testing
