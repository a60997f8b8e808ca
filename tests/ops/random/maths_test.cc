// SPDX-License-Identifier: Apache-2.0
#include "ops/random/float_maths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numbers>

namespace tenon {
namespace {

// The loop is over all uniform values that there are: so normal values are the host's, bit for bit.
TEST(RandomMathsTest, FunctionsAreTheCLibrarysForAllUniformValues) {
  int64_t logs = 0, sines = 0, cosines = 0;
  for (uint32_t word = 0; word < 1u << 23; ++word) {
    const float uniform = std::bit_cast<float>(word | 127u << 23) - 1.0f;
    const float u = std::max(uniform, 1.0e-7f);
    const auto v = static_cast<float>(2 * std::numbers::pi * uniform);
    logs += float_maths::LogOf(u) != std::log(u);
    sines += float_maths::SinOrCosOf(v, 0) != std::sin(v);
    cosines += float_maths::SinOrCosOf(v, 1) != std::cos(v);
  }
  EXPECT_EQ(logs, 0);
  EXPECT_EQ(sines, 0);
  EXPECT_EQ(cosines, 0);
}

}  // namespace
}  // namespace tenon
