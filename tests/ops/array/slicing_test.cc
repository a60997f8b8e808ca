// SPDX-License-Identifier: Apache-2.0
#include "core/build/slicing.h"

#include <gmock/gmock.h>

#include <limits>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

class SlicingTest : public ::testing::Test {
 protected:
  /// The elements of the slice, whose shape must be known in building and be the real one.
  std::vector<double> Elements(const Output& slice) {
    const Tensor value = s.Value(slice);
    EXPECT_EQ(slice.shape(), PartialShape(value.shape()));
    return Numbers(value);
  }
  GraphSession s;
  Output x = Const({{0, 1, 2, 3}, {10, 11, 12, 13}, {20, 21, 22, 23}});
};

TEST_F(SlicingTest, ElementsDropTheirDimension) {
  EXPECT_THAT(Elements(x[1]), ElementsAre(10, 11, 12, 13));
  EXPECT_THAT(Elements(x[-1]), ElementsAre(20, 21, 22, 23));
  EXPECT_THAT(Elements(x[{2, -1}]), ElementsAre(23));
  EXPECT_EQ((x[{2, -1}]).shape().rank(), 0);
}

TEST_F(SlicingTest, RangesKeepIt) {
  EXPECT_THAT(Elements(x[{{1, 3}}]), ElementsAre(10, 11, 12, 13, 20, 21, 22, 23));
  EXPECT_THAT(Elements(x[{{}, {2, {}}}]), ElementsAre(2, 3, 12, 13, 22, 23));
  EXPECT_THAT(Elements(x[{{{}, -2}, {1, 2}}]), ElementsAre(1));
  EXPECT_EQ((x[{{{}, -2}, {1, 2}}]).shape(), (PartialShape{1, 1}));
  EXPECT_THAT(Elements(x[{{}, {}}]).size(), 12);
  EXPECT_THAT(Elements(x[{{2, 2}}]), ElementsAre());
}

TEST_F(SlicingTest, StepsMayGoBackwards) {
  EXPECT_THAT(Elements(x[{0, {{}, {}, -1}}]), ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(Elements(x[{{{}, {}, 2}, 0}]), ElementsAre(0, 20));
  EXPECT_THAT(Elements(x[{0, {1, {}, {}}}]), ElementsAre(1, 2, 3));
}

TEST_F(SlicingTest, EllipsisAndNewAxis) {
  EXPECT_THAT(Elements(x[{kEllipsis, 0}]), ElementsAre(0, 10, 20));
  EXPECT_EQ((x[{kNewAxis, kEllipsis}]).shape(), (PartialShape{1, 3, 4}));
  EXPECT_EQ((x[{{}, kNewAxis, {1, 3}}]).shape(), (PartialShape{3, 1, 2}));
  EXPECT_THAT(Elements(x[{{}, kNewAxis, 2}]), ElementsAre(2, 12, 22));
}

TEST_F(SlicingTest, NumbersMayBeTensors) {
  const Output i = Placeholder(DType::kInt32, PartialShape({}));
  const Output row = x[i], some = x[{i, {i, {}}}], long_index = x[{{Cast(i, DType::kInt64), 3}}];
  const auto run = [&](int value) {
    auto values = s.Run({row, some, long_index}, {}, {{i.name(), Tensor::Scalar(value)}});
    EXPECT_OK(values);
    return *std::move(values);
  };
  std::vector<Tensor> values = run(1);
  EXPECT_THAT(Numbers(values[0]), ElementsAre(10, 11, 12, 13));
  EXPECT_THAT(Numbers(values[1]), ElementsAre(11, 12, 13));
  EXPECT_EQ(values[2].shape(), Shape({2, 4}));
  values = run(-1);
  EXPECT_THAT(Numbers(values[0]), ElementsAre(20, 21, 22, 23));
  EXPECT_THAT(Numbers(values[1]), ElementsAre(23));
}

TEST_F(SlicingTest, LargeNumbersAreOf64Bits) {
  const int64_t large = int64_t{1} << 40, largest = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(Elements(x[{{}, {2, large}}]), ElementsAre(2, 3, 12, 13, 22, 23));
  EXPECT_THAT(Elements(x[{{-large, 1}, 0}]), ElementsAre(0));
  EXPECT_EQ((x[{{}, {largest, {}}}]).shape(), (PartialShape{3, 0}));
}

/// for i in 0..3: sum += x[i, 1], whose slice is inside the loop.
TEST_F(SlicingTest, PartsAreTakenInLoops) {
  const auto variable = [](const Input& start) {
    return Merge({Enter(start, "loop"), Enter(start, "loop")}).output;
  };
  const Output i = variable(0), sum = variable(0);
  const Output more = LoopCond(Less(i, 3));
  const auto i_sides = Switch(i, more), sum_sides = Switch(sum, more);
  const Output rows = Enter(x, "loop", {.is_constant = true});
  const Output part = rows[{i_sides.output_true, 1}];
  ASSERT_OK(s.graph.Connect(NextIteration(Add(i_sides.output_true, 1)), i.node, 1));
  ASSERT_OK(s.graph.Connect(NextIteration(Add(sum_sides.output_true, part)), sum.node, 1));
  EXPECT_EQ(s.Value(Exit(sum_sides.output_false)).scalar<int32_t>(), 1 + 11 + 21);
}

TEST_F(SlicingTest, AGradientFlowsIntoThePart) {
  const Output v = Const({{1.0, 2.0}, {3.0, 4.0}});
  const Output part = v[{{}, 1}];
  const Output dv = Gradients(Mul(part, part), v)[0];
  EXPECT_THAT(Numbers(s.Value(dv)), ElementsAre(0, 4, 0, 8));
}

TEST_F(SlicingTest, NodesAreNamedAsPythons) {
  const NameScope scope("scope");
  EXPECT_EQ(x[0].name(), "scope/strided_slice");
  EXPECT_EQ(x[0].name(), "scope/strided_slice_1");
}

}  // namespace
}  // namespace tenon::testing
