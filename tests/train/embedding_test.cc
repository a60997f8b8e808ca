// SPDX-License-Identifier: Apache-2.0
// Tables in parts and what is looked up in them; values beside TensorFlow's are in
// tests/interop/layers_test.py.
#include "train/layers/embedding.h"

#include <gmock/gmock.h>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "tests/testing/status_matchers.h"
#include "tests/train/finite_differences.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

/// Row i of `rows` is {10 i, 10 i + 1}, of the whole also where it is in parts.
PartitionedVariable Numbered(int64_t rows, int parts) {
  auto begin = std::make_shared<int64_t>(0);
  return PartitionedVariable(
      "table", {rows, 2}, parts,
      {.initializer = [begin](const Shape& shape, DType dtype, const Shape&) {
        Tensor t = Tensor::Zeros(dtype, shape);
        for (int64_t i = 0; i < shape.dim(0); ++i, ++*begin) {
          t.data<float>()[2 * i] = static_cast<float>(*begin * 10);
          t.data<float>()[2 * i + 1] = static_cast<float>(*begin * 10 + 1);
        }
        return Const(t);
      }});
}

TEST(EmbeddingTest, PartsOfAVariableKnowTheWhole) {
  GraphSession s;
  {
    const NameScope scope("model");
    Numbered(10, 3);
  }
  std::vector<std::string> names;
  std::vector<int64_t> begins, rows;
  for (const VariableEntry& v : s.graph.variables()) {
    ASSERT_TRUE(v.part.has_value());
    EXPECT_EQ(v.part->name, "model/table");
    EXPECT_THAT(v.part->shape, ElementsAre(10, 2));
    EXPECT_EQ(PartialShape(v.part->extent), Output(v.ref).shape());
    names.push_back(v.ref->name());
    begins.push_back(v.part->begin[0]);
    rows.push_back(v.part->extent[0]);
  }
  EXPECT_THAT(names, ElementsAre("model/table/part_0", "model/table/part_1", "model/table/part_2"));
  EXPECT_THAT(begins, ElementsAre(0, 4, 7));
  EXPECT_THAT(rows, ElementsAre(4, 3, 3));
}

TEST(EmbeddingTest, ConsecutiveRowsAreFoundInWhateverPart) {
  for (const int parts : {1, 2, 3, 4, 10}) {
    GraphSession s;
    const PartitionedVariable table = Numbered(10, parts);
    const Output ids = Const({{9, 0, 3}, {4, 7, 4}}, {.dtype = DType::kInt64});
    const Output rows =
        EmbeddingLookup(table, ids, {.partition_strategy = PartitionStrategy::kDiv});
    EXPECT_EQ(rows.shape(), (PartialShape{2, 3, 2}));
    ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
    EXPECT_THAT(Numbers(s.Value(rows)), ElementsAre(90, 91, 0, 1, 30, 31, 40, 41, 70, 71, 40, 41));
  }
}

TEST(EmbeddingTest, ModuloSpreadsNeighbours) {
  GraphSession s;
  // Rows 0..3, 4..6 and 7..9 of the whole.
  const Output rows = EmbeddingLookup(Numbered(10, 3), {0, 1, 2, 3, 9});
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  EXPECT_THAT(Numbers(s.Value(rows)), ElementsAre(0, 1, 40, 41, 70, 71, 10, 11, 30, 31));
}

TEST(EmbeddingTest, AnIdBeyondTheRowsIsAnError) {
  for (const int parts : {1, 3}) {
    GraphSession s;
    const Output id = Placeholder(DType::kInt32, PartialShape{1}, {.name = "id"});
    const Output rows = EmbeddingLookup(Numbered(10, parts), id);
    ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
    EXPECT_OK(s.Run({rows}, {}, {{"id", Tensor::Vector<int32_t>({9})}}).status());
    EXPECT_FALSE(s.Run({rows}, {}, {{"id", Tensor::Vector<int32_t>({10})}}).ok());
    EXPECT_FALSE(s.Run({rows}, {}, {{"id", Tensor::Vector<int32_t>({-1})}}).ok());
  }
}

TEST(EmbeddingTest, GradientsHaveTheRowsThatWereLookedUp) {
  GraphSession s;
  const Embedding embedding(1000, 2, {.partitions = 2, .name = "words"});
  const Output loss = Sum(Square(embedding(Const({3, 501, 3, 999}))));
  const auto& parts = embedding.embeddings()->parts();
  ASSERT_EQ(parts.size(), 2);
  EXPECT_EQ(parts[1].ref().node->name(), "words/embeddings/part_1");
  const std::vector<Gradient> g = SparseGradients(loss, {parts[0].ref(), parts[1].ref()});
  ASSERT_TRUE(g[0].is_sparse());
  ASSERT_TRUE(g[1].is_sparse());
  // Nothing that the gradient of a table is made of is as large as the table.
  for (const Node* node : s.graph.nodes()) {
    const bool is_gradient = node->name().find("grad") != std::string::npos;
    for (int i = 0; is_gradient && i < node->num_outputs(); ++i) {
      EXPECT_LT(node->output_shape(i).num_elements().value_or(0), 1000) << node->name();
    }
  }
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  const auto rows = s.Run({g[0].slices.indices, g[1].slices.indices, g[0].slices.values});
  ASSERT_OK(rows.status());
  EXPECT_THAT(Numbers((*rows)[0]), UnorderedElementsAre(3, 3));
  EXPECT_THAT(Numbers((*rows)[1]), UnorderedElementsAre(1, 499));
  EXPECT_EQ((*rows)[2].shape(), (Shape{2, 2}));
}

TEST(EmbeddingTest, SparseLookupsCombineRows) {
  struct Case {
    Combiner combiner;
    bool weighted;
    std::vector<double> wanted;
  };
  const double root2 = std::sqrt(2.0), root5 = std::sqrt(5.0);
  // Ids {1, 2}, none, {4}, with weights {1, 2}, none, {3}.
  for (const Case& c : {
           Case{Combiner::kSum, false, {30, 32, 0, 0, 40, 41}},
           Case{Combiner::kMean, false, {15, 16, 0, 0, 40, 41}},
           Case{Combiner::kSqrtn, false, {30 / root2, 32 / root2, 0, 0, 40, 41}},
           Case{Combiner::kSum, true, {50, 53, 0, 0, 120, 123}},
           Case{Combiner::kMean, true, {50. / 3, 53. / 3, 0, 0, 40, 41}},
           Case{Combiner::kSqrtn, true, {50 / root5, 53 / root5, 0, 0, 40, 41}},
       }) {
    GraphSession s;
    const SparseIds ids{Const({{0, 0}, {0, 1}, {2, 0}}, {.dtype = DType::kInt64}),
                        Const({1, 2, 4})};
    const Output y =
        EmbeddingLookupSparse(Numbered(5, 2), ids,
                              {.combiner = c.combiner,
                               .weights = c.weighted ? Const({1.0f, 2.0f, 3.0f}) : Output(),
                               .partition_strategy = PartitionStrategy::kDiv});
    ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
    const std::vector<double> found = Numbers(s.Value(y));
    ASSERT_EQ(found.size(), c.wanted.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], c.wanted[i], 1e-4);
  }
}

TEST(EmbeddingTest, GradientsOfLookupsAreDifferences) {
  GraphSession s;
  const PartitionedVariable table("table", {5, 2}, 2, {.dtype = DType::kDouble});
  const SparseIds ids{Const({{0, 0}, {0, 1}, {2, 0}, {2, 1}}, {.dtype = DType::kInt64}),
                      Const({1, 2, 4, 1})};
  const Output weights = Waves({4}) + 2;
  Output loss = Sum(Square(EmbeddingLookup(table, {{0, 3}, {3, 4}})));
  for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtn}) {
    loss = loss + Sum(Square(EmbeddingLookupSparse(table, ids, {.combiner = combiner})));
    loss =
        loss +
        Sum(Square(EmbeddingLookupSparse(table, ids, {.combiner = combiner, .weights = weights})));
  }
  ExpectGradientsOfVariables(s, loss);
}

TEST(EmbeddingTest, RowsBeyondTheLargestNormAreLookedUpScaled) {
  for (const int parts : {1, 2}) {
    GraphSession s;
    // Row 0 is {0, 1}, row 1 {10, 11}, of norm root 221; ids of a rank that is known in the step.
    const PartitionedVariable table = Numbered(4, parts);
    const Output ids = PlaceholderWithDefault(Const({{0}, {1}}), PartialShape());
    const Output rows =
        EmbeddingLookup(table, ids, {.partition_strategy = PartitionStrategy::kDiv, .max_norm = 2});
    ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
    const std::vector<double> found = Numbers(s.Value(rows)),
                              wanted{0, 1, 20 / std::sqrt(221.0), 22 / std::sqrt(221.0)};
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-6);
  }
  GraphSession s;
  SetRandomSeed(3);
  const Embedding embedding(5, 3, {.dtype = DType::kDouble, .partitions = 2, .max_norm = 0.05});
  const PartitionedVariable numbers("numbers", {5}, 1, {.dtype = DType::kDouble});
  ExpectGradientsOfVariables(
      s, Sum(Square(embedding({{0, 3}, {3, 4}}) * 20)) +
             Sum(Square(EmbeddingLookup(numbers, {1, 4, 2, 1}, {.max_norm = 0.3}))));
}

TEST(EmbeddingTest, ANormBelow0IsAMistake) {
  for (const double norm : {-1.0, std::nan("")}) {
    GraphSession s;
    EXPECT_FALSE(Embedding(5, 2, {.max_norm = norm})({1}).exists());
    EXPECT_THAT(std::string(s.graph.error().message()),
                HasSubstr("the max_norm of an embedding lookup must be above 0"));
  }
}

TEST(EmbeddingTest, ResourcesAreLookedUpToo) {
  GraphSession s;
  const Variable table("table", Const({{1.0f, 2.0f}, {3.0f, 4.0f}}), {.resource = true});
  const Output rows = EmbeddingLookup(table, {1, 0, 1});
  const Gradient g = SparseGradients(Sum(Square(rows)), {table.ref()})[0];
  EXPECT_TRUE(g.is_sparse());
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  EXPECT_THAT(Numbers(s.Value(rows)), ElementsAre(3, 4, 1, 2, 3, 4));
  EXPECT_THAT(Numbers(s.Value(g.ToDense())), ElementsAre(2, 4, 12, 16));
}

TEST(EmbeddingTest, ASafeLookupGivesEveryRow) {
  GraphSession s;
  SparseIds ids{Const({{0, 0}, {0, 1}, {2, 0}}, {.dtype = DType::kInt64}), Const({1, -1, -1}),
                Const({4, 2}, {.dtype = DType::kInt64})};
  const PartitionedVariable table = Numbered(5, 2);
  const Output zeros = SafeEmbeddingLookupSparse(table, ids);
  const Output defaults = SafeEmbeddingLookupSparse(table, ids, {.default_id = 4});
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  EXPECT_THAT(Numbers(s.Value(zeros)), ElementsAre(10, 11, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Numbers(s.Value(defaults)), ElementsAre(10, 11, 40, 41, 40, 41, 40, 41));
  ids.dense_shape = {};
  SafeEmbeddingLookupSparse(table, ids);
  EXPECT_THAT(std::string(s.graph.error().message()), HasSubstr("needs the dense_shape"));
}

TEST(EmbeddingTest, WrongNumbersOfPartsAreMistakes) {
  for (const int parts : {0, 6}) {
    GraphSession s;
    const PartitionedVariable table("table", {5, 2}, parts);
    EXPECT_THAT(std::string(s.graph.error().message()),
                HasSubstr(StrCat("variable 'table' cannot have ", parts, " parts")));
    EXPECT_FALSE(EmbeddingLookup(table, {1}).exists());
    EXPECT_FALSE(Embedding(5, 2, {.partitions = parts})({1}).exists());
  }
}

}  // namespace
}  // namespace tenon::testing
