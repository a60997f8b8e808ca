// SPDX-License-Identifier: Apache-2.0
//
// Arguments at the ends of their ranges: empty tensors with a huge dimension, sizes whose sum or
// product does not fit, NaN as a key.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;

constexpr int64_t kHuge = int64_t{1} << 40;
constexpr int64_t kHalf = int64_t{1} << 62;
constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
constexpr StatusCode kExhausted = StatusCode::kResourceExhausted;

Tensor Empty(std::initializer_list<int64_t> dims, DType dtype = DType::kFloat) {
  return Tensor(dtype, Shape(dims));
}

/// The op's status, with its inputs known to the shape function and hidden from it.
struct BothStatuses {
  Status shown, hidden;
};
BothStatuses RunBoth(std::string_view op, const std::vector<Tensor>& inputs,
                     const AttributeMap& attrs = {}) {
  return {RunOp(op, inputs, attrs).status, RunOp(op, inputs, attrs, true).status};
}

void ExpectShape(std::string_view op, const std::vector<Tensor>& inputs, const Shape& wanted,
                 const AttributeMap& attrs = {}) {
  for (const bool hidden : {false, true}) {
    const OpResult result = RunOp(op, inputs, attrs, hidden);
    ASSERT_OK(result.status) << op;
    EXPECT_EQ(result.outputs[0].shape(), wanted) << op;
  }
}

TEST(CornerCasesTest, ManyEmptyMatrixProductsEndAtOnce) {
  ExpectShape("BatchMatMul", {Empty({kHuge, 0, 3}), Empty({kHuge, 3, 0})}, {kHuge, 0, 0});
  ExpectShape("BatchMatMulV2", {Empty({kHuge, 1, 0, 3}), Empty({2, 3, 5})}, {kHuge, 2, 0, 5});
  ExpectShape("BatchMatMulV2", {Empty({0, kHalf / 2, 1}), Empty({1, 2})}, {0, kHalf / 2, 2});
  ExpectShape("MatMul", {Empty({0, kHuge}), Empty({kHuge, 0})}, {0, 0});
}

TEST(CornerCasesTest, ProductsOverNothingAreZeros) {
  const Tensor z = RunOpOrDie("BatchMatMulV2", {Empty({2, 3, 0}), Empty({0, 2})});
  EXPECT_THAT(z.flat<float>(), ::testing::Each(0.0f));
  EXPECT_EQ(z.shape(), (Shape{2, 3, 2}));
}

/// The whole product is 0, infinite or no number, that of the others is none of these.
TEST(CornerCasesTest, TheGradientOfAProductIsThatOfTheOthers) {
  GraphSession s;
  const Output x = Const({{1e-30, 1e-30, 1e20}, {1e30, 1e30, 1e-20}, {0, 2, 3}, {0, 0, 5}});
  const Output dx = Gradients(Prod(x, {1}), {x})[0];
  EXPECT_THAT(Numbers(s.Value(dx)),
              ::testing::Pointwise(
                  ::testing::FloatEq(),
                  std::vector<float>{1e-10f, 1e-10f, 0, 1e10f, 1e10f,
                                     std::numeric_limits<float>::infinity(), 6, 0, 0, 0, 0, 0}));
}

TEST(CornerCasesTest, ReductionsOfEmptyTensorsEndAtOnce) {
  const Tensor axis = Tensor::Vector<int32_t>({1});
  for (const char* op : {"Sum", "Prod", "Min", "Max", "Mean"}) {
    ExpectShape(op, {Empty({0, kHuge}), axis}, {0});
    ExpectShape(op, {Empty({0, kHalf, 1}), axis}, {0, 1});
    EXPECT_THAT(RunOp(op, {Empty({kHuge, 0}), axis}).status, IsError(kExhausted, "out of"));
  }
  for (const char* op : {"All", "Any"}) {
    ExpectShape(op, {Empty({0, kHuge}, DType::kBool), axis}, {0});
    EXPECT_THAT(RunOp(op, {Empty({kHuge, 0}, DType::kBool), axis}).status,
                IsError(kExhausted, "out of"));
  }
  ExpectShape("BiasAddGrad", {Empty({kHuge, 0})}, {0});
  EXPECT_THAT(RunOp("BiasAddGrad", {Empty({0, kHuge})}).status, IsError(kExhausted, "out of"));
}

TEST(CornerCasesTest, IndexTuplesOfLengthZeroAskForNoMemory) {
  const Tensor indices = Empty({kHuge, 0}, DType::kInt32);
  EXPECT_THAT(RunOp("GatherNd", {Tensor::Vector<float>({1, 2}), indices}).status,
              IsError(kExhausted, "[1099511627776,2]"));
  EXPECT_THAT(RunOp("GatherNd", {Empty({0}), indices}).status,
              IsError(kInvalid, "Requested more than 0 entries"));
  ExpectShape("ScatterNd", {indices, Empty({kHuge, 0}), Tensor::Vector<int32_t>({0})}, {0});
  const Tensor two =
      RunOpOrDie("GatherNd", {Tensor::Vector<float>({1, 2}), Empty({2, 0}, DType::kInt32)});
  EXPECT_THAT(two.flat<float>(), ElementsAre(1, 2, 1, 2));
  const Tensor sum = RunOpOrDie(
      "ScatterNd", {Empty({2, 0}, DType::kInt32), Tensor::Of<float>({2, 2}, {1, 2, 3, 4}),
                    Tensor::Vector<int32_t>({2})});
  EXPECT_THAT(sum.flat<float>(), ElementsAre(4, 6));
}

TEST(CornerCasesTest, RearrangingEmptyTensorsEndsAtOnce) {
  const auto ints = [](std::initializer_list<int64_t> v) { return Tensor::Vector<int64_t>(v); };
  ExpectShape("Pad", {Empty({kHuge, 0}), Tensor::Of<int64_t>({2, 2}, {kHuge, 1, 0, 0})},
              {2 * kHuge + 1, 0});
  ExpectShape("Pad", {Empty({0, 0}), Tensor::Of<int64_t>({2, 2}, {kHalf, kHalf - 1, 0, 0})},
              {kHighest, 0});
  ExpectShape(
      "Slice",
      {Empty({0, 2, 1, 1, kHalf / 2}), ints({0, 2, 1, 1, kHalf / 2}), ints({0, 0, 0, 0, 0})},
      {0, 0, 0, 0, 0});
  ExpectShape("Transpose", {Empty({kHuge, 0, 2}), ints({2, 0, 1})}, {2, kHuge, 0});
  ExpectShape("ReverseV2", {Empty({kHuge, 0}), ints({0, 1})}, {kHuge, 0});
  ExpectShape("Tile", {Empty({0, 2}), ints({kHighest, kHuge})}, {0, 2 * kHuge});
  ExpectShape("DynamicStitch", {Empty({0}, DType::kInt32), Empty({0, kHuge})}, {0, kHuge});
}

TEST(CornerCasesTest, LossesOfEmptyTensorsEndAtOnce) {
  ExpectShape("SoftmaxCrossEntropyWithLogits", {Empty({0, kHuge}), Empty({0, kHuge})}, {0});
  EXPECT_THAT(RunOp("SoftmaxCrossEntropyWithLogits", {Empty({kHuge, 0}), Empty({kHuge, 0})}).status,
              IsError(kExhausted, "out of"));
  EXPECT_THAT(
      RunOp("InTopKV2", {Empty({0, kHuge}), Empty({0}, DType::kInt32), Tensor::Scalar<int32_t>(1)})
          .status,
      IsError(StatusCode::kOk, ""));
}

TEST(CornerCasesTest, SizesThatDoNotFitTogetherAreAnError) {
  const Tensor axis = Tensor::Scalar<int32_t>(0);
  const auto concat = RunBoth("ConcatV2", {Empty({kHalf, 0}), Empty({kHalf, 0}), axis});
  EXPECT_THAT(concat.shown, IsError(kInvalid, "does not fit in 64 bits"));
  EXPECT_THAT(concat.hidden, IsError(kInvalid, "does not fit in 64 bits"));
  const auto product = RunBoth("MatMul", {Empty({kHuge, 0}), Empty({0, kHuge})});
  EXPECT_THAT(product.shown, IsError(kInvalid, "too many elements"));
  EXPECT_THAT(product.hidden, IsError(kInvalid, "too many elements"));
  const auto pad =
      RunBoth("Pad", {Empty({kHalf, 0}), Tensor::Of<int64_t>({2, 2}, {kHalf, 0, 0, 0})});
  EXPECT_THAT(pad.shown, IsError(kInvalid, "does not fit in 64 bits"));
  EXPECT_THAT(pad.hidden, IsError(kInvalid, "does not fit in 64 bits"));
  const auto tile = RunBoth("Tile", {Empty({kHuge, 0}), Tensor::Vector<int64_t>({kHuge, 1})});
  EXPECT_THAT(tile.shown, IsError(kInvalid, "does not fit in 64 bits"));
  EXPECT_THAT(tile.hidden, IsError(kInvalid, "does not fit in 64 bits"));
  const auto offset = RunBoth(
      "ConcatOffset", {axis, Tensor::Vector<int32_t>({2000000000}),
                       Tensor::Vector<int32_t>({2000000000}), Tensor::Vector<int32_t>({1})});
  EXPECT_THAT(offset.shown, IsError(kInvalid, "does not fit in int32"));
}

TEST(CornerCasesTest, AGraphKnowsThatAShapeCannotBe) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output a = Placeholder(DType::kFloat, {kHuge, 0});
  const Output b = Placeholder(DType::kFloat, {0, kHuge});
  MatMul(a, b);
  EXPECT_THAT(building.status(), IsError(kInvalid, "too many elements"));
}

TEST(CornerCasesTest, ADimensionThatDoesNotFitInInt32IsNotCutOff) {
  EXPECT_THAT(RunOp("Shape", {Empty({kHuge, 0})}).status,
              IsError(kInvalid, "does not fit in int32"));
  EXPECT_THAT(
      RunOpOrDie("Shape", {Empty({kHuge, 0})}, {{"out_type", DType::kInt64}}).flat<int64_t>(),
      ElementsAre(kHuge, 0));
}

TEST(CornerCasesTest, AGradientHasTheHugeDimensionsOfItsValue) {
  GraphSession s;
  const Output x = Const(Empty({kHuge, 0}));
  const std::vector<Output> grads = Gradients(Neg(x), x);
  ASSERT_OK(s.graph.error());
  EXPECT_EQ(s.Value(grads[0]).shape(), (Shape{kHuge, 0}));
}

TEST(CornerCasesTest, BatchDimsOutOfRangeAreAnError) {
  const Tensor params = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  const Tensor indices = Tensor::Vector<int32_t>({0, 1});
  for (const int64_t batch_dims : {kLowest, kLowest + 1, int64_t{-2}, int64_t{2}, kHighest}) {
    const auto gather = RunBoth("GatherV2", {params, indices, Tensor::Scalar<int32_t>(1)},
                                {{"batch_dims", batch_dims}});
    EXPECT_THAT(gather.shown, IsError(kInvalid, "Expected batch_dims in the range [-1, 1]"));
    EXPECT_THAT(gather.hidden, IsError(kInvalid, "Expected batch_dims in the range [-1, 1]"));
  }
}

template <typename T>
void ExpectEachNanIsItsOwnKey(DType dtype) {
  const float nan = std::nanf("");
  const Tensor x = RunOpOrDie("Cast", {Tensor::Vector<float>({nan, 1, nan, -0.0f, 1, 0, nan})},
                              {{"SrcT", DType::kFloat}, {"DstT", dtype}});
  const OpResult found = RunOp("UniqueWithCounts", {x});
  ASSERT_OK(found.status);
  EXPECT_EQ(found.outputs[0].num_elements(), 5);
  EXPECT_THAT(found.outputs[1].flat<int32_t>(), ElementsAre(0, 1, 2, 3, 1, 3, 4));
  EXPECT_THAT(found.outputs[2].flat<int32_t>(), ElementsAre(1, 2, 1, 2, 1));
}

TEST(CornerCasesTest, EachNanIsItsOwnKey) {
  ExpectEachNanIsItsOwnKey<float>(DType::kFloat);
  ExpectEachNanIsItsOwnKey<double>(DType::kDouble);
  ExpectEachNanIsItsOwnKey<Half>(DType::kHalf);
}

TEST(CornerCasesTest, ComplexNumbersAreClippedPartByPart) {
  using C = std::complex<double>;
  const Tensor found =
      RunOpOrDie("ClipByValue", {Tensor::Vector<C>({C(1, 2), C(-3, 1), C(5, -9)}),
                                 Tensor::Scalar(C(0, 0)), Tensor::Scalar(C(2, 1))});
  EXPECT_THAT(found.flat<C>(), ElementsAre(C(1, 1), C(0, 1), C(2, 0)));
}

TEST(CornerCasesTest, ANodeHasNoMillionOutputs) {
  const auto status = RunOp("DynamicPartition", {Empty({0}), Empty({0}, DType::kInt32)},
                            {{"num_partitions", 1000000}})
                          .status;
  EXPECT_THAT(status, IsError(kInvalid, "at most 65536 outputs, found 1000000"));
}

TEST(CornerCasesTest, HandlesAreShuffledAsObjects) {
  Tensor handles(DType::kResource, {5});
  for (int i = 0; i < 5; ++i) {
    handles.data<ResourceHandle>()[i].name = StrCat("a name too long to be kept in place ", i);
  }
  const Tensor shuffled = RunOpOrDie("RandomShuffle", {handles});
  std::vector<std::string> names;
  for (const ResourceHandle& h : shuffled.flat<ResourceHandle>()) names.emplace_back(h.name);
  std::sort(names.begin(), names.end());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(names[i], handles.data<ResourceHandle>()[i].name);
}

}  // namespace
}  // namespace tenon::testing
