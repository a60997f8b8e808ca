// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/gradient/gradients.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/random/random_ops.h"
#include "ops/state/state_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

// Values that are TensorFlow 2.15.1's; op_conformance_test.py compares many more.

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

TEST(RandomDraws, SamplersDrawWhatTensorFlowDraws) {
  const Tensor classes = Tensor::Of<int64_t>({1, 1}, {2});
  const AttributeMap attrs = {{"num_true", 1},   {"num_sampled", 4}, {"unique", true},
                              {"range_max", 10}, {"seed", 3},        {"seed2", 5}};
  EXPECT_THAT(Numbers(RunOpOrDie("UniformCandidateSampler", {classes}, attrs)),
              ElementsAre(9, 8, 2, 5));
  EXPECT_THAT(Numbers(RunOpOrDie("LogUniformCandidateSampler", {classes}, attrs)),
              ElementsAre(0, 1, 4, 5));
}

TEST(RandomDraws, ParametersThatNobodyCanDrawFromGiveNan) {
  const Tensor shape = Tensor::Vector({3}), seed = Tensor::Vector({1, 2});
  const double nan = std::nan(""), inf = HUGE_VAL;
  for (const double rate : {nan, -inf}) {
    const Tensor y = RunOpOrDie("StatelessRandomPoisson", {shape, seed, Tensor::Scalar(rate)},
                                {{"dtype", DType::kDouble}});
    EXPECT_TRUE(std::isnan(y.data<double>()[0])) << rate;
  }
  for (const double alpha : {nan, -3.0}) {
    const Tensor y = RunOpOrDie("StatelessRandomGammaV2", {shape, seed, Tensor::Scalar(alpha)});
    EXPECT_TRUE(std::isnan(y.data<double>()[0])) << alpha;
  }
  const Tensor y =
      RunOpOrDie("StatelessRandomBinomial", {shape, seed, Tensor::Scalar(nan), Tensor::Scalar(0.5)},
                 {{"dtype", DType::kDouble}});
  EXPECT_TRUE(std::isnan(y.data<double>()[0]));
}

TEST(RandomDraws, AnInfiniteRateOfPoissonGivesInfinity) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor rate = Tensor::Scalar(infinity), seed = Tensor::Vector({1, 2});
  for (const DType type : {DType::kFloat, DType::kDouble, DType::kHalf}) {
    const Tensor y =
        RunOpOrDie("StatelessRandomPoisson", {Tensor::Vector({1}), seed, rate}, {{"dtype", type}});
    EXPECT_THAT(Numbers(y), ElementsAre(infinity));
  }
  for (const DType type : {DType::kInt32, DType::kInt64}) {
    const Tensor y =
        RunOpOrDie("StatelessRandomPoisson", {Tensor::Vector({1}), seed, rate}, {{"dtype", type}});
    EXPECT_THAT(Numbers(y), ElementsAre(0));
  }
  const Tensor rates = Tensor::Vector<float>({infinity, -infinity, std::nanf("")});
  const Tensor drawn = RunOpOrDie("RandomPoissonV2", {Tensor::Vector({1}), rates},
                                  {{"seed", 1}, {"dtype", DType::kFloat}});
  EXPECT_EQ(drawn.data<float>()[0], infinity);
  EXPECT_TRUE(std::isnan(drawn.data<float>()[1]));
  EXPECT_TRUE(std::isnan(drawn.data<float>()[2]));
}

TEST(RandomDraws, BothVersionsOfPoissonDrawTheSame) {
  const std::vector<Tensor> inputs = {Tensor::Vector({5}), Tensor::Vector<float>({3, 40})};
  const AttributeMap seeds = {{"seed", 3}, {"seed2", 5}};
  AttributeMap with_type = seeds;
  with_type.Set("dtype", DType::kFloat);
  EXPECT_TRUE(RunOpOrDie("RandomPoisson", inputs, seeds)
                  .Equals(RunOpOrDie("RandomPoissonV2", inputs, with_type)));
}

TEST(RandomDraws, TheGradientOfGammaIsBySample) {
  GraphSession s;
  const Output alpha = Const({0.5f, 3.0f});
  const Output y = StatelessRandomGammaV2(Const({4, 2}), Const({1, 2}), alpha);
  const auto values =
      s.Run({Gradients({y}, {alpha})[0], Sum(RandomGammaGrad(alpha, y), Const({0}))});
  ASSERT_OK(values);
  EXPECT_EQ(Numbers((*values)[0]), Numbers((*values)[1]));
  EXPECT_GT((*values)[0].data<float>()[0], 0);
  const Output z = RandomGamma(Const({4}), alpha);
  EXPECT_EQ(s.Value(Gradients({z}, {alpha})[0]).shape(), (Shape{2}));
}

TEST(RandomDraws, ACropIsABoxOfTheImage) {
  Tensor image(DType::kInt32, {4, 5, 2});
  for (int i = 0; i < 40; ++i) image.data<int32_t>()[i] = i;
  const Tensor y =
      RunOpOrDie("RandomCrop", {image, Tensor::Vector<int64_t>({2, 3})}, {{"seed", 1}});
  ASSERT_EQ(y.shape(), (Shape{2, 3, 2}));
  const int32_t first = y.data<int32_t>()[0];
  for (int row = 0; row < 2; ++row) {
    for (int i = 0; i < 6; ++i) EXPECT_EQ(y.data<int32_t>()[row * 6 + i], first + row * 10 + i);
  }
  EXPECT_THAT(RunOp("RandomCrop", {image, Tensor::Vector<int64_t>({5, 3})}).status,
              IsError(StatusCode::kInvalidArgument, "size must be in [0, 4], found 5"));
}

TEST(RandomDraws, AGeneratorInAVariableGoesOn) {
  GraphSession s;
  const Output state = VarHandleOp(DType::kInt64, PartialShape{4});
  Node* const start = AssignVariableOp(state, Const(std::vector<int64_t>{1, 2, 3, 0}));
  ASSERT_OK(s.Run({}, {start}));
  const Output draw =
      StatefulUniform(state, 1, Const(std::vector<int64_t>{2}), {.dtype = DType::kFloat});
  const Tensor first = s.Value(draw), second = s.Value(draw);
  EXPECT_FALSE(first.Equals(second));
  EXPECT_THAT(Numbers(s.Value(ReadVariableOp(state, DType::kInt64))),
              ElementsAre(1 + 4 * 256, 2, 3, 0));
  const Output wrong =
      StatefulUniform(state, 2, Const(std::vector<int64_t>{2}), {.dtype = DType::kFloat});
  EXPECT_THAT(s.Run({wrong}), IsError(StatusCode::kInvalidArgument, "Unsupported algorithm id: 2"));
}

/// The first version of the op: the algorithm stands in the variable, before the rest.
TEST(RandomDraws, TheAlgorithmMayStandInTheVariable) {
  GraphSession s;
  const Output tagged = VarHandleOp(DType::kInt64, PartialShape{4});
  const Output state = VarHandleOp(DType::kInt64, PartialShape{3});
  ASSERT_OK(s.Run({}, {AssignVariableOp(tagged, Const(std::vector<int64_t>{1, 4, 5, 6})),
                       AssignVariableOp(state, Const(std::vector<int64_t>{4, 5, 6}))}));
  const Output shape = Const(std::vector<int64_t>{7});
  const Tensor a = s.Value(StatefulStandardNormal(tagged, shape));
  EXPECT_TRUE(a.Equals(s.Value(StatefulStandardNormalV2(state, 1, shape))));
}

TEST(RandomDraws, WrongUsesOfSamplersFail) {
  const auto status = [](const Tensor& classes, AttributeMap attrs) {
    attrs.Set("num_true", 1);
    attrs.Set("num_sampled", 3);
    attrs.Set("unique", true);
    attrs.Set("range_max", attrs.GetOr("range_max", int64_t{5}));
    const bool fixed = attrs.Get<std::vector<float>>("unigrams").ok();
    return RunOp(fixed ? "FixedUnigramCandidateSampler" : "LearnedUnigramCandidateSampler",
                 {classes}, attrs)
        .status;
  };
  const Tensor classes = Tensor::Of<int64_t>({1, 1}, {2});
  EXPECT_THAT(status(classes, {{"range_max", int64_t{2}}}),
              IsError(StatusCode::kInvalidArgument, ""));
  EXPECT_THAT(
      status(Tensor::Of<int64_t>({1, 1}, {-1}), {}),
      IsError(StatusCode::kInvalidArgument, "`true_classes` out of range [0, 5), received -1"));
  EXPECT_THAT(status(classes, {{"range_max", int64_t{1} << 40}}),
              IsError(StatusCode::kInvalidArgument, "range_max must be less"));
  EXPECT_THAT(status(classes, {{"unigrams", std::vector<float>{1, 2}}}),
              IsError(StatusCode::kInvalidArgument, "must be the number of weights, 2"));
  EXPECT_THAT(status(classes, {{"unigrams", std::vector<float>{0, 0, 0, 0, 0}}}),
              IsError(StatusCode::kInvalidArgument, "the sum of weights is 0"));
}

}  // namespace
}  // namespace tenon::testing
