// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "proto/example.pb.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Tensor kNoTexts(DType::kString, {0});

std::string MessageOf(const std::vector<int64_t>& ids, const std::vector<float>& weights) {
  Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  for (const int64_t id : ids) features["ids"].mutable_int64_list()->add_value(id);
  for (const float w : weights) features["w"].mutable_float_list()->add_value(w);
  return example.SerializeAsString();
}

/// ids as a sparse, w as a dense tensor of shape [2].
OpResult Parse(const std::vector<std::string>& messages, const Tensor& missing) {
  return RunOp(
      "ParseExample",
      {Tensor::Vector(messages), kNoTexts, Tensor::Scalar("ids"), Tensor::Scalar("w"), missing},
      {{"sparse_types", DTypeVector{DType::kInt64}},
       {"Tdense", DTypeVector{DType::kFloat}},
       {"dense_shapes", std::vector<PartialShape>{PartialShape{2}}},
       {"Nsparse", 1},
       {"Ndense", 1}});
}

TEST(ParseExampleTest, SparseAndDenseFeaturesOfABatch) {
  const Tensor missing = Tensor::Of<float>({2}, {8, 9});
  const OpResult r = Parse(
      {MessageOf({1, -2, 1 << 30}, {0.5, 1}), MessageOf({}, {}), MessageOf({7}, {2, 3})}, missing);
  ASSERT_TRUE(r.status.ok()) << r.status;
  EXPECT_THAT(r.outputs[0].flat<int64_t>(), ElementsAre(0, 0, 0, 1, 0, 2, 2, 0));
  EXPECT_THAT(r.outputs[1].flat<int64_t>(), ElementsAre(1, -2, 1 << 30, 7));
  EXPECT_THAT(r.outputs[2].flat<int64_t>(), ElementsAre(3, 3));
  EXPECT_THAT(r.outputs[3].flat<float>(), ElementsAre(0.5, 1, 8, 9, 2, 3));
}

TEST(ParseExampleTest, SaysWhichMessageIsWrong) {
  const Tensor none(DType::kFloat, {0});
  const std::string good = MessageOf({1}, {1, 2});
  const auto error = [&](const std::string& bad) {
    const OpResult r = Parse({good, bad, good}, none);
    EXPECT_EQ(r.status.code(), StatusCode::kInvalidArgument);
    return std::string(r.status.message());
  };
  EXPECT_THAT(error(MessageOf({1}, {})), HasSubstr("w (data type: float) is required"));
  EXPECT_THAT(error(MessageOf({1}, {1, 2, 3})),
              AllOf(HasSubstr("Key: w, Index: 1.  Number of float values"),
                    HasSubstr("Can't parse serialized Example.")));
  EXPECT_THAT(error(good.substr(0, good.size() - 1)), HasSubstr("Could not parse"));
}

/// Whatever bytes come: a result or an error.
TEST(ParseExampleTest, EveryDamagedMessageEndsWell) {
  const std::string good = MessageOf({1, 300, -1}, {1, 2});
  const Tensor missing = Tensor::Of<float>({2}, {8, 9});
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int bits : {1, 2, 8, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ bits);
      const OpResult r = Parse({good, bad}, missing);
      EXPECT_TRUE(r.status.ok() || r.status.code() == StatusCode::kInvalidArgument) << r.status;
    }
  }
}

TEST(ParseExampleTest, RaggedAndVariableFeatures) {
  const OpResult r =
      RunOp("ParseExampleV2",
            {Tensor::Vector({MessageOf({1, 2}, {1}), MessageOf({}, {2, 3, 4})}), kNoTexts, kNoTexts,
             Tensor::Vector({"w"}), Tensor::Vector({"ids"}), Tensor::Scalar(-1.0f)},
            {{"num_sparse", 0},
             {"sparse_types", DTypeVector{}},
             {"Tdense", DTypeVector{DType::kFloat}},
             {"dense_shapes", std::vector<PartialShape>{PartialShape{-1}}},
             {"ragged_value_types", DTypeVector{DType::kInt64}},
             {"ragged_split_types", DTypeVector{DType::kInt32}}});
  ASSERT_TRUE(r.status.ok()) << r.status;
  EXPECT_EQ(r.outputs[0].shape(), Shape({2, 3}));
  EXPECT_THAT(r.outputs[0].flat<float>(), ElementsAre(1, -1, -1, 2, 3, 4));
  EXPECT_THAT(r.outputs[1].flat<int64_t>(), ElementsAre(1, 2));
  EXPECT_THAT(r.outputs[2].flat<int32_t>(), ElementsAre(0, 2, 2));
}

TEST(ParseSequenceExampleTest, ListsHaveADimensionForSteps) {
  std::vector<std::string> messages;
  for (const int steps : {2, 0, 1}) {
    SequenceExample message;
    auto& list = (*message.mutable_feature_lists()->mutable_feature_list())["x"];
    for (int t = 0; t < steps; ++t) {
      auto* values = list.add_feature()->mutable_int64_list();
      values->add_value(t);
      values->add_value(10 * t + 1);
    }
    messages.push_back(message.SerializeAsString());
  }
  const AttributeMap attrs = {
      {"feature_list_dense_keys", std::vector<std::string>{"x"}},
      {"feature_list_dense_types", DTypeVector{DType::kInt64}},
      {"feature_list_dense_shapes", std::vector<PartialShape>{PartialShape{2}}},
      {"Nfeature_list_dense", 1},
      {"feature_list_dense_missing_assumed_empty", std::vector<std::string>{"x"}},
      {"context_sparse_keys", std::vector<std::string>{}},
      {"context_dense_keys", std::vector<std::string>{}},
      {"feature_list_sparse_keys", std::vector<std::string>{}},
      {"Tcontext_dense", DTypeVector{}}};
  const OpResult r = RunOp("ParseSequenceExample", {Tensor::Vector(messages), kNoTexts}, attrs);
  ASSERT_TRUE(r.status.ok()) << r.status;
  EXPECT_EQ(r.outputs[0].shape(), Shape({3, 2, 2}));
  EXPECT_THAT(r.outputs[0].flat<int64_t>(), ElementsAre(0, 1, 1, 11, 0, 0, 0, 0, 0, 1, 0, 0));
  EXPECT_THAT(r.outputs[1].flat<int64_t>(), ElementsAre(2, 0, 1));
}

}  // namespace
}  // namespace tenon::testing
