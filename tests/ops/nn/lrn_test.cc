// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

TEST(Lrn, DividesByWhatIsNear) {
  const Tensor x = Tensor::Of<float>({1, 1, 1, 4}, {1, 2, 3, 4});
  const AttributeMap attrs = {{"depth_radius", 1}, {"alpha", 2.0f}, {"beta", 1.0f}, {"bias", 0.5f}};
  EXPECT_THAT(Numbers(RunOpOrDie("LRN", {x}, attrs)),
              Pointwise(FloatNear(1e-6f), {1 / 10.5, 2 / 28.5, 3 / 58.5, 4 / 50.5}));
}

TEST(Lrn, ARadiusMayBeLargerThanTheChannels) {
  const Tensor x = Tensor::Of<float>({1, 1, 1, 2}, {1, 2});
  const AttributeMap attrs = {{"depth_radius", 1000000}};
  const float norm = std::sqrt(6.0f);
  EXPECT_THAT(Numbers(RunOpOrDie("LRN", {x}, attrs)),
              Pointwise(FloatNear(1e-6f), {1 / norm, 2 / norm}));
}

TEST(Lrn, RefusesWrongArguments) {
  const Tensor x(DType::kFloat, {1, 1, 1, 2}), other(DType::kFloat, {1, 1, 2, 1});
  EXPECT_THAT(RunOp("LRN", {x}, {{"depth_radius", -1}}).status, IsError(kInvalid, "depth_radius"));
  for (const bool hidden : {false, true}) {
    EXPECT_THAT(RunOp("LRN", {Tensor(DType::kFloat, {2})}, {}, hidden).status,
                IsError(kInvalid, "4"));
    EXPECT_THAT(RunOp("LRNGrad", {x, x, other}, {}, hidden).status, IsError(kInvalid, ""));
  }
}

TEST(Lrn, TheGradientIsThatOfSimpleOps) {
  for (const float beta : {0.5f, 0.75f, 1.0f}) {
    GraphSession s;
    const Output x = Const(Sample(DType::kFloat, {1, 2, 2, 5}, -2, 2, 1));
    const Output weights = Const(Sample(DType::kFloat, {1, 2, 2, 5}, -2, 2, 2));
    const Output y = LRN(x, {.depth_radius = 1, .bias = 1.5f, .alpha = 0.5f, .beta = beta});
    const Output near = Const({{1.0f, 1.0f, 0.0f, 0.0f, 0.0f},
                               {1.0f, 1.0f, 1.0f, 0.0f, 0.0f},
                               {0.0f, 1.0f, 1.0f, 1.0f, 0.0f},
                               {0.0f, 0.0f, 1.0f, 1.0f, 1.0f},
                               {0.0f, 0.0f, 0.0f, 1.0f, 1.0f}});
    const Output sums = Reshape(MatMul(Reshape(Square(x), {4, 5}), near), {1, 2, 2, 5});
    const Output z = x * Pow(1.5f + 0.5f * sums, -beta);
    EXPECT_THAT(Numbers(s.Value(Gradients(y * weights, x)[0])),
                Pointwise(FloatNear(1e-5f), Numbers(s.Value(Gradients(z * weights, x)[0]))));
  }
}

}  // namespace
}  // namespace tenon::testing
