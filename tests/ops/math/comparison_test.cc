// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

TEST(ApproximateEqual, ItsToleranceBecomesANumberOfTheDtype) {
  const auto equal = [](const auto& x, const auto& y, float tolerance) {
    const Tensor z = RunOpOrDie("ApproximateEqual", {Tensor::Vector(x), Tensor::Vector(y)},
                                {{"tolerance", tolerance}});
    return std::vector<bool>(z.data<bool>(), z.data<bool>() + z.num_elements());
  };
  const std::vector<float> floats = {0, 1, 2}, zeros = {0, 0, 0};
  EXPECT_THAT(equal(floats, zeros, 1.5f), ElementsAre(1, 1, 0));
  EXPECT_THAT(equal(floats, zeros, -1), ElementsAre(0, 0, 0));
  const std::vector<int32_t> integers = {0, 1, 2}, none = {0, 0, 0};
  EXPECT_THAT(equal(integers, none, 1.9f), ElementsAre(1, 1, 0));
  EXPECT_THAT(equal(integers, none, -1), ElementsAre(0, 0, 0));
  // -25.5 becomes -25, which is the largest but 24 of these.
  const std::vector<uint64_t> naturals = {0, 1, ~uint64_t{0}}, nothing = {0, 0, 0};
  EXPECT_THAT(equal(naturals, nothing, -25.5f), ElementsAre(1, 1, 0));
}

TEST(Equal, QuantisedNumbersAreEqualWhenTheirIntegersAre) {
  const auto check = [](const Tensor& x, const Tensor& y, DType quantised) {
    const std::vector<Tensor> inputs = {x.BitcastTo(quantised, x.shape()),
                                        y.BitcastTo(quantised, y.shape())};
    EXPECT_THAT(RunOpOrDie("Equal", inputs).flat<bool>(), ElementsAre(true, false));
    EXPECT_THAT(RunOpOrDie("NotEqual", inputs).flat<bool>(), ElementsAre(false, true));
  };
  check(Tensor::Vector<int8_t>({-1, 2}), Tensor::Vector<int8_t>({-1, 3}), DType::kQInt8);
  check(Tensor::Vector<uint8_t>({255, 2}), Tensor::Vector<uint8_t>({255, 3}), DType::kQUInt8);
  check(Tensor::Vector<int16_t>({-1, 2}), Tensor::Vector<int16_t>({-1, 258}), DType::kQInt16);
  check(Tensor::Vector<uint16_t>({9, 2}), Tensor::Vector<uint16_t>({9, 258}), DType::kQUInt16);
  check(Tensor::Vector<int32_t>({-1, 2}), Tensor::Vector<int32_t>({-1, 65538}), DType::kQInt32);
}

}  // namespace
}  // namespace tenon::testing
