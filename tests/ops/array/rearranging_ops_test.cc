// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <limits>

#include "tests/testing/cpu_time.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

// Ops that move elements: space to batch and depth, diagonals, mirrors, rolls, scatters.

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

Tensor Counting(const Shape& shape) {
  Tensor t(DType::kFloat, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.data<float>()[i] = static_cast<float>(i + 1);
  return t;
}

/// The op refuses the inputs with that text, also where shape inference does not see them.
void ExpectRefused(std::string_view op, const std::vector<Tensor>& inputs,
                   const AttributeMap& attrs, std::string_view text) {
  EXPECT_THAT(RunOp(op, inputs, attrs, /*hide_inputs=*/true).status,
              IsError(StatusCode::kInvalidArgument, text));
}

const Tensor kTwoByTwo = Tensor::Vector({2, 2});
const Tensor kNone = Tensor::Of({2, 2}, {0, 0, 0, 0});

TEST(SpaceOpsTest, BlocksGoToTheBatchAndBack) {
  const Tensor image = Counting({1, 2, 4, 1});
  const Tensor batch = RunOpOrDie("SpaceToBatchND", {image, kTwoByTwo, kNone});
  EXPECT_EQ(batch.shape(), (Shape{4, 1, 2, 1}));
  EXPECT_THAT(Numbers(batch), ElementsAre(1, 3, 2, 4, 5, 7, 6, 8));
  EXPECT_TRUE(RunOpOrDie("BatchToSpaceND", {batch, kTwoByTwo, kNone}).Equals(image));
  EXPECT_TRUE(RunOpOrDie("SpaceToBatch", {image, kNone}, {{"block_size", 2}}).Equals(batch));
  EXPECT_TRUE(RunOpOrDie("BatchToSpace", {batch, kNone}, {{"block_size", 2}}).Equals(image));
}

TEST(SpaceOpsTest, PaddingIsZeroAndCropsAreCutOff) {
  const Tensor margins = Tensor::Of({1, 2}, {1, 2}), block = Tensor::Vector({3});
  const Tensor batch = RunOpOrDie("SpaceToBatchND", {Counting({1, 3}), block, margins});
  EXPECT_THAT(Numbers(batch), ElementsAre(0, 3, 1, 0, 2, 0));
  EXPECT_THAT(Numbers(RunOpOrDie("BatchToSpaceND", {batch, block, margins})), ElementsAre(1, 2, 3));
}

TEST(SpaceOpsTest, BlocksGoToTheChannelsAndBack) {
  const Tensor image = Counting({1, 2, 2, 2});
  const Tensor deep = RunOpOrDie("SpaceToDepth", {Counting({1, 2, 4, 1})}, {{"block_size", 2}});
  EXPECT_EQ(deep.shape(), (Shape{1, 1, 2, 4}));
  EXPECT_THAT(Numbers(deep), ElementsAre(1, 2, 5, 6, 3, 4, 7, 8));
  const Tensor there = RunOpOrDie("SpaceToDepth", {image}, {{"block_size", 2}});
  EXPECT_TRUE(RunOpOrDie("DepthToSpace", {there}, {{"block_size", 2}}).Equals(image));
}

TEST(SpaceOpsTest, WrongBlocksAreErrors) {
  const Tensor x = Counting({2, 3}), pads = Tensor::Of({1, 2}, {0, 0});
  const auto refuse = [&](const Tensor& block, const Tensor& margins, std::string_view text) {
    ExpectRefused("SpaceToBatchND", {x, block, margins}, {}, text);
  };
  refuse(Tensor::Vector({2}), pads, "a padded dimension is 3, which is not divisible by 2");
  refuse(Tensor::Vector({0}), pads, "block_shape[0] must be positive, found 0");
  refuse(Tensor::Vector({3}), kNone, "paddings must have shape [1,2], found [2,2]");
  refuse(Tensor::Vector({3}), Tensor::Of({1, 2}, {-1, 1}), "paddings[0] must not be negative");
  refuse(kTwoByTwo, kNone, "the input must have rank 3 or more");
  const int64_t huge = int64_t{1} << 62;
  refuse(Tensor::Vector<int64_t>({huge}), Tensor::Of<int64_t>({1, 2}, {huge, huge}),
         "does not fit in 64 bits");
  ExpectRefused("BatchToSpaceND", {x, Tensor::Vector({2}), Tensor::Of({1, 2}, {4, 3})}, {},
                "crops[0] take 7 of 6 elements");
  ExpectRefused("DepthToSpace", {Counting({1, 1, 1, 6})}, {{"block_size", 2}},
                "the number of channels is 6, which is not divisible by 4");
  ExpectRefused("DepthToSpace", {Counting({1, 4, 1, 1})},
                {{"block_size", 2}, {"data_format", "NCHW"}},
                "No OpKernel was registered to support Op 'DepthToSpace' on CPU with data_format "
                "NCHW: there it must be NHWC");
}

TEST(DiagonalOpsTest, OfTensorsAndOfMatrices) {
  EXPECT_THAT(Numbers(RunOpOrDie("Diag", {Counting({2})})), ElementsAre(1, 0, 0, 2));
  EXPECT_THAT(Numbers(RunOpOrDie("DiagPart", {Counting({2, 2})})), ElementsAre(1, 4));
  EXPECT_THAT(Numbers(RunOpOrDie("MatrixDiag", {Counting({2})})), ElementsAre(1, 0, 0, 2));
  // Its main diagonal is 1, 5, 9, as long as its rows.
  const Tensor matrix = Counting({3, 3}), ends = Tensor::Vector({-1, 1}),
               filling = Tensor::Scalar(0.f);
  const auto part = [&](std::string_view align) {
    return Numbers(
        RunOpOrDie("MatrixDiagPartV3", {matrix, ends, filling}, {{"align", std::string(align)}}));
  };
  EXPECT_THAT(part("LEFT_LEFT"), ElementsAre(2, 6, 0, 1, 5, 9, 4, 8, 0));
  EXPECT_THAT(part("RIGHT_LEFT"), ElementsAre(0, 2, 6, 1, 5, 9, 4, 8, 0));
  EXPECT_THAT(part("LEFT_RIGHT"), ElementsAre(2, 6, 0, 1, 5, 9, 0, 4, 8));
}

TEST(DiagonalOpsTest, SetDiagonalsAndBands) {
  const Tensor matrix = Counting({2, 3});
  EXPECT_THAT(Numbers(RunOpOrDie("MatrixSetDiag", {matrix, Tensor::Vector<float>({7, 8})})),
              ElementsAre(7, 2, 3, 4, 8, 6));
  EXPECT_THAT(Numbers(RunOpOrDie("MatrixSetDiagV3",
                                 {matrix, Tensor::Vector<float>({7, 8}), Tensor::Scalar(1)})),
              ElementsAre(1, 7, 3, 4, 5, 8));
  const auto band = [&](int64_t lower, int64_t upper) {
    return Numbers(
        RunOpOrDie("MatrixBandPart", {matrix, Tensor::Scalar(lower), Tensor::Scalar(upper)}));
  };
  EXPECT_THAT(band(0, 1), ElementsAre(1, 2, 0, 0, 5, 6));
  EXPECT_THAT(band(-1, 0), ElementsAre(1, 0, 0, 4, 5, 0));
}

TEST(DiagonalOpsTest, WrongDiagonalsAreErrors) {
  const Tensor matrix = Counting({2, 3}), zero = Tensor::Scalar(0.f);
  const auto part = [&](const Tensor& k, std::string_view text) {
    ExpectRefused("MatrixDiagPartV3", {matrix, k, zero}, {}, text);
  };
  part(Tensor::Scalar(3), "lower_diag_index is out of bound: 3. It must be between");
  part(Tensor::Scalar(-2), "lower_diag_index is out of bound: -2");
  part(Tensor::Vector({1, 0}), "lower_diag_index must not be larger than upper_diag_index: 1 > 0");
  part(Tensor::Vector<int32_t>({}), "one or two elements");
  const auto diag = [&](const Tensor& diagonal, const Tensor& k, int rows, std::string_view text) {
    ExpectRefused("MatrixDiagV3", {diagonal, k, Tensor::Scalar(rows), Tensor::Scalar(-1), zero}, {},
                  text);
  };
  diag(Counting({2}), Tensor::Scalar(0), 1, "The number of rows is too small");
  diag(Counting({3, 2}), Tensor::Vector({0, 1}), -1, "does not match the 2 of k");
  diag(Counting({2}), Tensor::Vector({0, 1}), -1, "does not match the 2 of k");
  ExpectRefused("MatrixSetDiag", {matrix, zero}, {}, "diagonal must be at least 1-dim");
  ExpectRefused("MatrixSetDiag", {matrix, Counting({3})}, {}, "Expected diagonal shape: [2]");
  ExpectRefused("MatrixBandPart", {matrix, Tensor::Scalar<int64_t>(3), Tensor::Scalar<int64_t>(0)},
                {}, "num_lower = 3 is more than 2");
  ExpectRefused("DiagPart", {matrix}, {}, "found [2,3]");
}

TEST(MirrorPadTest, LeavesOutTheEdgeOrRepeatsIt) {
  const Tensor x = Counting({3}), pads = Tensor::Of({1, 2}, {2, 2});
  const auto pad = [&](const char* mode) {
    return Numbers(RunOpOrDie("MirrorPad", {x, pads}, {{"mode", mode}}));
  };
  EXPECT_THAT(pad("REFLECT"), ElementsAre(3, 2, 1, 2, 3, 2, 1));
  EXPECT_THAT(pad("SYMMETRIC"), ElementsAre(2, 1, 1, 2, 3, 3, 2));
  const auto fold = [&](const char* mode) {
    return Numbers(RunOpOrDie("MirrorPadGrad", {Counting({7}), pads}, {{"mode", mode}}));
  };
  EXPECT_THAT(fold("REFLECT"), ElementsAre(3 + 7, 2 + 4 + 6, 1 + 5));
  EXPECT_THAT(fold("SYMMETRIC"), ElementsAre(2 + 3, 1 + 4 + 7, 5 + 6));
}

TEST(MirrorPadTest, MirrorsNoMoreThanThereIs) {
  const Tensor pads = Tensor::Of({1, 2}, {3, 0});
  ExpectRefused("MirrorPad", {Counting({3}), pads}, {{"mode", "REFLECT"}}, "3, 0 greater than 2");
  EXPECT_OK(RunOp("MirrorPad", {Counting({3}), pads}, {{"mode", "SYMMETRIC"}}).status);
  ExpectRefused("MirrorPadGrad", {Counting({3}), pads}, {{"mode", "SYMMETRIC"}}, "paddings[0]");
}

TEST(RollTest, MovesAroundTheEnd) {
  const auto roll = [](const Tensor& shift, const Tensor& axis) {
    return Numbers(RunOpOrDie("Roll", {Counting({2, 3}), shift, axis}));
  };
  EXPECT_THAT(roll(Tensor::Scalar(1), Tensor::Scalar(1)), ElementsAre(3, 1, 2, 6, 4, 5));
  EXPECT_THAT(roll(Tensor::Vector({1, -4}), Tensor::Vector({0, -1})),
              ElementsAre(5, 6, 4, 2, 3, 1));
  const int64_t most = std::numeric_limits<int64_t>::max();  // 1 in threes
  EXPECT_THAT(roll(Tensor::Vector({most, most}), Tensor::Vector({1, 1})),
              ElementsAre(2, 3, 1, 5, 6, 4));
  ExpectRefused("Roll", {Counting({2}), Tensor::Scalar(1), Tensor::Scalar(1)}, {}, "axis = 1");
}

TEST(ScatterNdTest, TextsOfOnePlaceAreJoined) {
  const Tensor indices = Tensor::Of<int32_t>({4, 1}, {4, 3, 3, 1});
  const Tensor texts = Tensor::Vector<TString>({"a", "b", "c", "d"});
  const Tensor scattered = RunOpOrDie("ScatterNd", {indices, texts, Tensor::Vector({5})});
  EXPECT_TRUE(scattered.Equals(Tensor::Vector<TString>({"", "d", "", "bc", "a"})));
}

TEST(ScatterNdTest, ManyTextsOfOnePlaceTakeTimeInProportion) {
  const int64_t count = 400000;
  Tensor indices = Tensor::Zeros(DType::kInt32, {count, 1}), texts(DType::kString, {count});
  for (int64_t i = 0; i < count; ++i) texts.data<TString>()[i] = TString(std::string(8, 'a'));
  const CpuTime time;
  const Tensor joined = RunOpOrDie("ScatterNd", {indices, texts, Tensor::Vector({1})});
  EXPECT_EQ(joined.scalar<TString>().size(), 8u * count);
  EXPECT_LT(time.seconds(), 10);
}

TEST(RearrangingTest, ErrorsNameTheWrongElementAsTensorFlowsDo) {
  const Tensor x = Counting({2, 3}), flat = Counting({3});
  ExpectRefused("DynamicPartition", {x, Tensor::Of<int32_t>({2, 3}, {0, 0, 0, 0, 17, 0})},
                {{"num_partitions", 7}}, "partitions[1,1] = 17 is not in [0, 7)");
  ExpectRefused("DynamicPartition", {flat, Tensor::Scalar(17)}, {{"num_partitions", 7}},
                "partitions = 17 is not in [0, 7)");
  for (const char* op : {"DynamicStitch", "ParallelDynamicStitch"}) {
    ExpectRefused(op, {Tensor::Vector({-1000}), Counting({1})}, {}, "out of range");
  }
  ExpectRefused("Transpose", {Counting({1, 1, 1}), Tensor::Vector({0, 1, 1})}, {},
                "2 is missing from {0,1,1}: 1 is duplicated in the permutation.");
  Tensor ones(DType::kInt64, {254});
  std::fill_n(ones.data<int64_t>(), 254, 1);
  ExpectRefused("Reshape", {Counting({1}), ones}, {}, "too many dimensions: must be < 254");
  EXPECT_OK(RunOp("Reshape", {Counting({1}), ones.Slice(0, 253)}).status);
  const Tensor row = Tensor::Of<int32_t>({1, 3}, {2, 3, 5});
  for (const bool hidden : {false, true}) {
    EXPECT_THAT(RunOp("ConcatOffset", {Tensor::Scalar(1), row, row}, {}, hidden).status,
                IsError(StatusCode::kInvalidArgument, "input 0 should be a vector"));
  }
  ExpectRefused("MatrixSetDiag", {Counting({2, 3, 3}), Counting({2, 4})}, {},
                "first dimensions of diagonal don't match");
}

TEST(TensorScatterTest, CombinesWithWhatIsThere) {
  const Tensor indices = Tensor::Of({3, 1}, {2, 0, 2}), updates = Tensor::Vector<float>({5, -1, 7});
  const auto scatter = [&](const char* op) {
    return Numbers(RunOpOrDie(op, {Counting({3}), indices, updates}));
  };
  EXPECT_THAT(scatter("TensorScatterUpdate"), ElementsAre(-1, 2, 7));
  EXPECT_THAT(scatter("TensorScatterAdd"), ElementsAre(0, 2, 15));
  EXPECT_THAT(scatter("TensorScatterSub"), ElementsAre(2, 2, -9));
  EXPECT_THAT(scatter("TensorScatterMin"), ElementsAre(-1, 2, 3));
  EXPECT_THAT(scatter("TensorScatterMax"), ElementsAre(1, 2, 7));
  ExpectRefused("TensorScatterAdd", {Counting({2}), indices, updates}, {},
                "indices[0] = [2] does not index into shape [2]");
  ExpectRefused("TensorScatterAdd", {Counting({3}), indices, Counting({2})}, {},
                "updates must have shape [3], found [2]");
}

TEST(EnsureShapeTest, GivesTheInputOrAnError) {
  const AttributeMap attrs = {{"shape", PartialShape{-1, 3}}};
  EXPECT_TRUE(RunOpOrDie("EnsureShape", {Counting({2, 3})}, attrs).Equals(Counting({2, 3})));
  ExpectRefused("EnsureShape", {Counting({3, 2})}, attrs,
                "not compatible with expected shape [?,3]");
}

TEST(BroadcastArgsTest, GivesTheCommonShape) {
  EXPECT_THAT(Numbers(RunOpOrDie("BroadcastArgs", {Tensor::Vector({2, 1}), Tensor::Vector({3})})),
              ElementsAre(2, 3));
  ExpectRefused("BroadcastArgs", {Tensor::Vector({2}), Tensor::Vector({3})}, {}, "[2] vs. [3]");
}

TEST(TileGrad, AddsUpRepetitions) {
  const Tensor dy = Tensor::Of<float>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor dx = RunOpOrDie("TileGrad", {dy, Tensor::Vector({1, 2})});
  EXPECT_TRUE(dx.Equals(Tensor::Of<float>({2, 2}, {4, 6, 12, 14})));
  EXPECT_EQ(RunOp("TileGrad", {dy, Tensor::Vector({1, 3})}).status.code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(RunOp("TileGrad", {dy, Tensor::Vector({1, 0})}).status.code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tenon::testing
