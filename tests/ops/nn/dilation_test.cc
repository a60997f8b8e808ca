// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using List = std::vector<int64_t>;

AttributeMap Attrs(std::string_view padding, List rates = {1, 1, 1, 1}) {
  return {{"strides", List{1, 1, 1, 1}}, {"rates", std::move(rates)}, {"padding", padding}};
}

Tensor Image(const Shape& shape, std::vector<float> values) {
  return Tensor::Of<float>(shape, values);
}

TEST(Dilation2D, TakesTheLargestSum) {
  const Tensor x = Image({1, 2, 3, 1}, {1, 5, 2, 4, 0, 3}), f = Image({2, 2, 1}, {0, 0, 2, 9});
  EXPECT_THAT(Numbers(RunOpOrDie("Dilation2D", {x, f}, Attrs("VALID"))), ElementsAre(9, 12));
  EXPECT_THAT(Numbers(RunOpOrDie("Dilation2D", {x, f}, Attrs("SAME"))),
              ElementsAre(9, 12, 5, 4, 3, 3));
  const AttributeMap apart = Attrs("VALID", {1, 1, 2, 1});
  EXPECT_THAT(Numbers(RunOpOrDie("Dilation2D", {x, f}, apart)), ElementsAre(12));
}

TEST(Dilation2D, GradientsGoToTheFirstOfTheLargestSums) {
  const Tensor x = Image({1, 1, 3, 1}, {1, 2, 2}), f = Image({1, 2, 1}, {1, 0});
  const Tensor dy = Image({1, 1, 2, 1}, {1, 10});
  EXPECT_THAT(Numbers(RunOpOrDie("Dilation2DBackpropInput", {x, f, dy}, Attrs("VALID"))),
              ElementsAre(1, 10, 0));
  EXPECT_THAT(Numbers(RunOpOrDie("Dilation2DBackpropFilter", {x, f, dy}, Attrs("VALID"))),
              ElementsAre(11, 0));
}

TEST(Dilation2D, RefusesWhatDoesNotFit) {
  const Tensor x(DType::kFloat, {1, 3, 3, 1}), f(DType::kFloat, {2, 2, 1});
  const Tensor other(DType::kFloat, {2, 2, 2}), large(DType::kFloat, {5, 5, 1});
  const Tensor dy(DType::kFloat, {1, 1, 2, 1});
  for (const bool hidden : {false, true}) {
    const auto status = [&](const Tensor& filter, const AttributeMap& attrs) {
      return RunOp("Dilation2D", {x, filter}, attrs, hidden).status;
    };
    EXPECT_THAT(status(other, Attrs("VALID")), IsError(kInvalid, ""));
    EXPECT_THAT(status(large, Attrs("VALID")), IsError(kInvalid, "negative"));
    EXPECT_THAT(status(dy, Attrs("VALID")), IsError(kInvalid, "3"));
    EXPECT_THAT(status(f, Attrs("VALID", {1, 0, 1, 1})), IsError(kInvalid, "dilations holds 0"));
    for (const char* const op : {"Dilation2DBackpropInput", "Dilation2DBackpropFilter"}) {
      EXPECT_THAT(RunOp(op, {x, f, dy}, Attrs("VALID"), hidden).status,
                  IsError(kInvalid, "out_backprop"));
    }
  }
}

}  // namespace
}  // namespace tenon::testing
