// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/gradient/gradients.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

// Gradients that are not the derivatives of rounding; op_conformance_test.py compares the values.

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

class QuantizeTest : public ::testing::Test {
 protected:
  std::vector<std::vector<double>> GradientsOf(Output y, const std::vector<Output>& xs) {
    std::vector<std::vector<double>> result;
    const auto values = s.Run(Gradients({y}, xs));
    EXPECT_OK(values);
    for (const Tensor& t : *values) result.push_back(Numbers(t));
    return result;
  }
  GraphSession s;
  const Output x = Const({-9.0f, -0.5f, 0.5f, 9.0f});
};

TEST_F(QuantizeTest, FakeQuantPassesWhatIsInTheRange) {
  const Output args = FakeQuantWithMinMaxArgs(x, {.min = -1, .max = 1});
  EXPECT_THAT(GradientsOf(args, {x}), ElementsAre(ElementsAre(0, 1, 1, 0)));
  const Output min = Const(-1.0f), max = Const(1.0f);
  EXPECT_THAT(GradientsOf(FakeQuantWithMinMaxVars(x, min, max), {x, min, max}),
              ElementsAre(ElementsAre(0, 1, 1, 0), ElementsAre(1), ElementsAre(1)));
  const Output mins = Const({-1.0f, -1.0f, 0.0f, -10.0f}), maxs = Const({1.0f, 1.0f, 0.0f, 1.0f});
  EXPECT_THAT(
      GradientsOf(FakeQuantWithMinMaxVarsPerChannel(x, mins, maxs), {x, mins, maxs}),
      ElementsAre(ElementsAre(0, 1, 1, 0), ElementsAre(1, 0, 0, 0), ElementsAre(0, 0, 0, 1)));
}

TEST_F(QuantizeTest, ChannelsWithoutElementsAreNotCounted) {
  for (const Shape& shape : {Shape{0, int64_t{1} << 60}, Shape{int64_t{1} << 60, 1, 0}}) {
    const Tensor x(DType::kFloat, shape), any = Tensor::Scalar(0.0f);
    const Tensor y = RunOpOrDie("QuantizeAndDequantizeV2", {x, any, any}, {{"axis", 1}});
    EXPECT_EQ(y.shape(), shape);
  }
}

TEST_F(QuantizeTest, QuantizeAndDequantizePassesGradientsOn) {
  const Output min = Const(-1.0f), max = Const(1.0f);
  EXPECT_THAT(GradientsOf(QuantizeAndDequantize(x), {x}), ElementsAre(ElementsAre(1, 1, 1, 1)));
  EXPECT_THAT(GradientsOf(QuantizeAndDequantizeV2(x, min, max, {.range_given = true}), {x}),
              ElementsAre(ElementsAre(1, 1, 1, 1)));
  EXPECT_THAT(GradientsOf(QuantizeAndDequantizeV3(x, min, max, Const(8)), {x}),
              ElementsAre(ElementsAre(1, 1, 1, 1)));
  EXPECT_THAT(
      GradientsOf(QuantizeAndDequantizeV4(x, min, max, {.range_given = true}), {x, min, max}),
      ElementsAre(ElementsAre(0, 1, 1, 0), ElementsAre(0), ElementsAre(0)));
}

/// Either there is a result of the input's shape, or the error says what is wrong with the range.
void ExpectResultOrReason(const OpResult& result, const Tensor& values) {
  if (!result.status.ok()) {
    EXPECT_EQ(result.status.code(), StatusCode::kInvalidArgument) << result.status;
    return;
  }
  EXPECT_EQ(result.outputs[0].shape(), values.shape());
}

TEST_F(QuantizeTest, RangesThatAreNoneGiveAResultOrAReason) {
  const float nan = std::nanf(""), inf = HUGE_VALF;
  for (const float low : {nan, inf, -inf, 3.0f}) {
    const Tensor values = Tensor::Vector<float>({1, nan, inf});
    const std::vector<Tensor> inputs = {values, Tensor::Scalar(low), Tensor::Scalar(3.0f)};
    ExpectResultOrReason(RunOp("FakeQuantWithMinMaxVars", inputs), values);
    ExpectResultOrReason(RunOp("QuantizeAndDequantizeV2", inputs, {{"range_given", true}}), values);
  }
}

}  // namespace
}  // namespace tenon::testing
