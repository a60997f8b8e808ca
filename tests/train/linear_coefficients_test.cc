// SPDX-License-Identifier: Apache-2.0
#include "train/feature_columns/linear_coefficients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/proto/proto_io_graph.h"
#include "data/checkpoint/meta_graph_file.h"
#include "data/checkpoint/tensor_bundle.h"
#include "ops/register.h"
#include "proto/meta_graph.pb.h"
#include "tests/data/sample_files.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kWeights[] = "linear/linear_model/f/weights";

/// A node as text.
std::string NodeText(const std::string& name, const std::string& op, const std::string& rest) {
  return StrCat("node { name: \"", name, "\" op: \"", op, "\" ", rest, " }\n");
}
std::string Type(const std::string& attr, const std::string& type) {
  return StrCat(" attr { key: \"", attr, "\" value { type: ", type, " } }");
}
std::string Constant(const std::string& name, const std::string& type, const std::string& tensor) {
  return NodeText(name, "Const",
                  StrCat(Type("dtype", type), " attr { key: \"value\" value { tensor { dtype: ",
                         type, " ", tensor, " } } }"));
}
std::string Integers(const std::string& name, const std::vector<int>& values) {
  std::string tensor = StrCat("tensor_shape { dim { size: ", values.size(), " } }");
  for (const int v : values) StrAppend(&tensor, " int64_val: ", v);
  return Constant(name, "DT_INT64", tensor);
}
std::string Integer(const std::string& name, int value) {
  return Constant(name, "DT_INT64", StrCat("tensor_shape { } int64_val: ", value));
}

/// The weights, and what reads the rows whose numbers "ids" has.
std::string Gathered(const std::string& ids) {
  return NodeText(kWeights, "VarHandleOp",
                  Type("dtype", "DT_FLOAT") + " attr { key: \"shape\" value { shape { } } }") +
         NodeText("gather", "ResourceGather",
                  StrCat("input: \"", kWeights, "\" input: \"", ids, "\"",
                         Type("dtype", "DT_FLOAT"), Type("Tindices", "DT_INT64")));
}
std::string Texts() { return NodeText("x", "Placeholder", Type("dtype", "DT_STRING")); }
/// A table and its lookup "find".
std::string Lookup(int default_row) {
  return Texts() + Integer("default", default_row) +
         NodeText("table", "HashTableV2",
                  Type("key_dtype", "DT_STRING") + Type("value_dtype", "DT_INT64")) +
         NodeText("find", "LookupTableFindV2",
                  "input: \"table\" input: \"x\" input: \"default\"" + Type("Tin", "DT_STRING") +
                      Type("Tout", "DT_INT64"));
}
std::string FilledWith(const std::vector<int>& rows) {
  return Constant("words", "DT_STRING",
                  "tensor_shape { dim { size: 3 } } string_val: \"UA\" string_val: \"AA\" "
                  "string_val: \"a,b\"") +
         Integers("rows", rows) +
         NodeText("fill", "LookupTableImportV2",
                  "input: \"table\" input: \"words\" input: \"rows\"" + Type("Tin", "DT_STRING") +
                      Type("Tout", "DT_INT64"));
}
std::string FilledFromFile(int size) {
  return Constant("file", "DT_STRING", "tensor_shape { } string_val: \"words.txt\"") +
         NodeText(
             "fill", "InitializeTableFromTextFileV2",
             StrCat("input: \"table\" input: \"file\" attr { key: \"key_index\" value { i: -2 } }"
                    " attr { key: \"value_index\" value { i: -1 } }"
                    " attr { key: \"vocab_size\" value { i: ",
                    size, " } }"));
}
std::string Buckets(int count) {
  return NodeText("hash", "StringToHashBucketFast",
                  StrCat("input: \"x\" attr { key: \"num_buckets\" value { i: ", count, " } }"));
}

class LinearCoefficientsTest : public ::testing::Test {
 protected:
  LinearCoefficientsTest() { RegisterAllOps(ops_); }

  WeightRows Rows(const std::string& graph, int64_t count) {
    const auto meta = ParseMetaGraphDef(graph, "graph");
    TENON_CHECK(meta.ok(), meta.status().ToString());
    const auto built = GraphFromProto(meta->graph_def(), ops_);
    TENON_CHECK(built.ok(), built.status().ToString());
    return NameWeightRows(*built, kWeights, count, [&](const std::string& name) {
      return words_.empty()
                 ? StatusOr<VocabularyFile>(NotFound("there is no vocabulary '", name, "'"))
                 : StatusOr<VocabularyFile>(VocabularyFile{"at/" + name, words_});
    });
  }
  std::vector<std::string> Levels(const std::string& graph, int64_t count) {
    const WeightRows rows = Rows(graph, count);
    EXPECT_THAT(rows.why_unnamed, IsEmpty());
    std::vector<std::string> levels;
    for (const WeightRow& row : rows.rows) {
      levels.push_back(StrCat(row.level, "|", ToString(row.kind)));
    }
    return levels;
  }
  std::string WhyUnnamed(const std::string& graph, int64_t count) {
    const WeightRows rows = Rows(graph, count);
    EXPECT_THAT(rows.rows, SizeIs(count));
    for (const WeightRow& row : rows.rows) EXPECT_EQ(row.kind, WeightRowKind::kUnnamed);
    EXPECT_EQ(rows.rows.back().level, StrCat("row ", count - 1));
    return rows.why_unnamed;
  }

  OpRegistry ops_;
  std::string words_;
};

TEST_F(LinearCoefficientsTest, WordsOfTheGraphNameRows) {
  EXPECT_THAT(Levels(Lookup(-1) + FilledWith({0, 1, 2}) + Gathered("find"), 3),
              ElementsAre("UA|category", "AA|category", "a,b|category"));
}

TEST_F(LinearCoefficientsTest, ARowOfAWordCanBeThatOfUnknownWordsToo) {
  EXPECT_THAT(Levels(Lookup(1) + FilledWith({0, 1, 2}) + Gathered("find"), 3),
              ElementsAre("UA|category", "AA or out of vocabulary|category", "a,b|category"));
}

TEST_F(LinearCoefficientsTest, UnknownWordsHaveRowsBehindTheVocabulary) {
  const std::string others =
      Buckets(2) + Integer("size", 3) +
      NodeText("add", "AddV2", "input: \"hash\" input: \"size\"" + Type("T", "DT_INT64")) +
      NodeText("known", "NotEqual", "input: \"find\" input: \"default\"" + Type("T", "DT_INT64")) +
      NodeText("ids", "SelectV2",
               "input: \"known\" input: \"find\" input: \"add\"" + Type("T", "DT_INT64"));
  EXPECT_THAT(Levels(Lookup(-1) + FilledWith({0, 1, 2}) + others + Gathered("ids"), 5),
              ElementsAre("UA|category", "AA|category", "a,b|category",
                          "out of vocabulary 0 of 2|out of vocabulary",
                          "out of vocabulary 1 of 2|out of vocabulary"));
}

TEST_F(LinearCoefficientsTest, WordsOfAFileNameRows) {
  words_ = "UA\r\nAA\nDL";
  const std::string graph = Lookup(-1) + FilledFromFile(3) + Gathered("find");
  EXPECT_THAT(Levels(graph, 3), ElementsAre("UA|category", "AA|category", "DL|category"));
  EXPECT_EQ(Rows(graph, 3).file, "at/words.txt");
  words_ = "UA\nAA\n";
  EXPECT_THAT(WhyUnnamed(graph, 3), HasSubstr("'at/words.txt' has 2 lines, wanted 3"));
  words_ = "";
  EXPECT_THAT(WhyUnnamed(graph, 3), HasSubstr("there is no vocabulary 'words.txt'"));
}

TEST_F(LinearCoefficientsTest, ATableThatNumbersInAnotherOrderNamesNothing) {
  EXPECT_THAT(WhyUnnamed(Lookup(-1) + FilledWith({0, 2, 1}) + Gathered("find"), 3),
              HasSubstr("does not number its words from 0 on"));
  EXPECT_THAT(WhyUnnamed(Lookup(-1) + Gathered("find"), 3),
              HasSubstr("nothing in the graph fills"));
}

TEST_F(LinearCoefficientsTest, NumbersThatAreChangedOnTheWayNameNothing) {
  const std::string moved =
      Integer("one", 1) +
      NodeText("ids", "AddV2", "input: \"find\" input: \"one\"" + Type("T", "DT_INT64"));
  EXPECT_THAT(WhyUnnamed(Lookup(-1) + FilledWith({0, 1, 2}) + moved + Gathered("ids"), 3),
              HasSubstr("the row numbers come from 'ids' (AddV2)"));
}

TEST_F(LinearCoefficientsTest, AnotherNumberOfRowsThanOfWordsNamesNothing) {
  EXPECT_EQ(WhyUnnamed(Lookup(-1) + FilledWith({0, 1, 2}) + Gathered("find"), 4),
            "the graph has 3 names for 4 rows");
  EXPECT_EQ(WhyUnnamed(Texts() + Buckets(7) + Gathered("hash"), 4), "the graph has 7 buckets");
  EXPECT_EQ(WhyUnnamed(Texts(), 4), "the graph has no such variable");
}

TEST_F(LinearCoefficientsTest, HashBucketsHaveNumbers) {
  EXPECT_THAT(Levels(Texts() + Buckets(2) + Gathered("hash"), 2),
              ElementsAre("bucket 0 of 2|hash bucket", "bucket 1 of 2|hash bucket"));
}

TEST_F(LinearCoefficientsTest, IntervalsHaveTheirBoundaries) {
  const auto graph = [](const std::string& number) {
    return NodeText("x", "Placeholder", Type("dtype", "DT_FLOAT")) +
           NodeText("scaled", "Neg", "input: \"x\"" + Type("T", "DT_FLOAT")) +
           NodeText("places", "Bucketize",
                    StrCat("input: \"", number, "\"", Type("T", "DT_FLOAT"),
                           " attr { key: \"boundaries\" value { list { f: 6 f: 9.5 } } }")) +
           NodeText("ids", "Cast",
                    "input: \"places\"" + Type("SrcT", "DT_INT32") + Type("DstT", "DT_INT64")) +
           Gathered("ids");
  };
  EXPECT_THAT(Levels(graph("x"), 3),
              ElementsAre("< 6|interval", "[6, 9.5)|interval", ">= 9.5|interval"));
  EXPECT_THAT(Levels(graph("x"), 6)[5], HasSubstr("element 1 >= 9.5"));
  EXPECT_THAT(WhyUnnamed(graph("x"), 4), HasSubstr("the graph has 3 names for 4 rows"));
  EXPECT_THAT(Levels(graph("scaled"), 3)[0], HasSubstr("< 6 of what 'scaled' gives"));
}

TEST_F(LinearCoefficientsTest, IntegersOfTheDataNameTheirRows) {
  EXPECT_THAT(Levels(NodeText("x", "Placeholder", Type("dtype", "DT_INT64")) + Gathered("x"), 2),
              ElementsAre("0|category", "1|category"));
}

/// A checkpoint of these tensors.
class LinearCheckpoint {
 public:
  explicit LinearCheckpoint(const std::vector<std::pair<std::string, Tensor>>& tensors) {
    const std::string prefix = folder_ / "model";
    auto writer = BundleWriter::Create(prefix);
    TENON_CHECK(writer.ok());
    for (const auto& [name, value] : tensors) TENON_CHECK((*writer)->Add(name, value).ok());
    TENON_CHECK((*writer)->Finish().ok());
    auto reader = BundleReader::Open(prefix);
    TENON_CHECK(reader.ok());
    reader_ = *std::move(reader);
  }
  const BundleReader& reader() const { return *reader_; }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<BundleReader> reader_;
};

StatusOr<VocabularyFile> NoVocabulary(const std::string& /*name*/) { return NotFound("none"); }

TEST(LinearCoefficientCsvTest, HasTheBiasFirstAndNoSlots) {
  const LinearCheckpoint checkpoint(
      {{"global_step", Tensor::Scalar<int64_t>(3)},
       {"linear/linear_model/a,b/weights", Tensor::Of<float>({2, 1}, {0.1f, -2e-9f})},
       {"linear/linear_model/a,b/weights/part_0/Ftrl", Tensor::Of<float>({2, 1}, {7, 7})},
       {"linear/linear_model/bias_weights", Tensor::Of<float>({1}, {0.25f})}});
  const auto model =
      ReadLinearCoefficients(checkpoint.reader(), nullptr, "there is no graph", NoVocabulary);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(CoefficientCsv(*model),
            "column,level,kind,row,weight\n(bias),,bias,0,0.25\n"
            "\"a,b\",row 0,unnamed,0,0.1\n\"a,b\",row 1,unnamed,1,-2e-09\n");
  const std::string table = CoefficientTable(*model, 2);
  EXPECT_THAT(table, HasSubstr("... 1 more\nRows have no names: there is no graph.\n"));
  EXPECT_THAT(table, Not(HasSubstr("Output")));
}

TEST(LinearCoefficientCsvTest, ScopesAndClassesAreToldApart) {
  const LinearCheckpoint checkpoint(
      {{"linear_model/x/weights", Tensor::Of<float>({1, 2}, {1, 2})},
       {"b/linear_model/x/weights", Tensor::Of<float>({1, 2}, {3, 4})}});
  const auto model = ReadLinearCoefficients(checkpoint.reader(), nullptr, "no graph", NoVocabulary);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(CoefficientCsv(*model),
            "column,level,kind,row,output,weight\nx,row 0,unnamed,0,0,1\nx,row 0,unnamed,0,1,2\n"
            "b/x,row 0,unnamed,0,0,3\nb/x,row 0,unnamed,0,1,4\n");
}

TEST(LinearCoefficientCsvTest, ACheckpointWithoutAnyIsAnError) {
  const LinearCheckpoint checkpoint({{"dense/kernel", Tensor::Of<float>({1, 1}, {1})}});
  EXPECT_FALSE(HasLinearWeights(checkpoint.reader()));
  const auto model = ReadLinearCoefficients(checkpoint.reader(), nullptr, "", NoVocabulary);
  EXPECT_EQ(model.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(model.status().ToString(), HasSubstr("has no coefficients of a linear model"));
}

}  // namespace
}  // namespace tenon::testing
