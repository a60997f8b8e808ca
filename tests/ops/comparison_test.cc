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

}  // namespace
}  // namespace tenon::testing
