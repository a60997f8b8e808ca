// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <limits>

#include "core/gradient/gradients.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

TEST(Xdivy, IsZeroWhereXIsWhateverYIs) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::Vector<float>({0, -0.0f, 0, 6, -6});
  const Tensor y = Tensor::Vector<float>({0, nan, 2, 2, 4});
  EXPECT_THAT(Numbers(RunOpOrDie("Xdivy", {x, y})), ElementsAre(0, 0, 0, 3, -1.5));
}

TEST(Xdivy, NoGradientFlowsWhereXIsZero) {
  GraphSession s;
  const Output x = Const({0.0, 0.0, 6.0}), y = Const({0.0, 2.0, 2.0});
  const std::vector<Output> gradients = Gradients(Xdivy(x, y), {x, y});
  EXPECT_THAT(Numbers(s.Value(gradients[0])), ElementsAre(0, 0, 0.5));
  EXPECT_THAT(Numbers(s.Value(gradients[1])), ElementsAre(0, 0, -1.5));
}

/// As the product of two ops does, and as TensorFlow's kernels do.
TEST(Xlogy, TheLogarithmOf16BitsIsRounded) {
  const auto narrow = [](const auto& one, const auto& other) {
    const auto of = [&](std::string_view op) {
      return RunOpOrDie(op, {Tensor::Scalar(one), Tensor::Scalar(other)});
    };
    const auto product = [&](std::string_view log) {
      return RunOpOrDie("Mul", {Tensor::Scalar(one), RunOpOrDie(log, {Tensor::Scalar(other)})});
    };
    EXPECT_EQ(Numbers(of("Xlogy")), Numbers(product("Log")));
    EXPECT_EQ(Numbers(of("Xlog1py")), Numbers(product("Log1p")));
  };
  for (const float x : {3.5f, -5.0f, 30.0f, 8.875f}) {
    for (const float y : {0.2f, 3.5f, 4.0f, 15.5f}) {
      narrow(Half(x), Half(y));
      narrow(BFloat16(x), BFloat16(y));
    }
  }
}

}  // namespace
}  // namespace tenon::testing
