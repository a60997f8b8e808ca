// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile/feed_dependencies.h"

#include <gtest/gtest.h>

#include "ops/array/array_ops.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "runtime/compile/step_graph.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

TEST(FeedDependenciesTest, AFetchNeedsWhatItsNodesWaitFor) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  const Output y = Placeholder(DType::kFloat, {}, {.name = "y"});
  const Output cut = Add(y, 1.0f, {.name = "cut"});
  Add(x, cut, {.name = "both"});
  Neg(x, {.name = "one"});
  {
    const ControlDependencies after({y});
    Neg(x, {.name = "late"});
  }
  ASSERT_OK(graph.error());
  const Signature signature{{"x", "y"}, {"one", "both", "late"}, {}};
  const auto step = MakeStepGraph(graph, signature);
  ASSERT_OK(step);
  const FeedDependencies dependencies(*step, 3);
  EXPECT_EQ(dependencies.MissingFeed({0}, {false, false}), 0);
  EXPECT_EQ(dependencies.MissingFeed({0}, {true, false}), -1);
  EXPECT_EQ(dependencies.MissingFeed({0, 1}, {true, false}), 1);
  EXPECT_EQ(dependencies.MissingFeed({2}, {true, false}),
            -1);  // a fed placeholder asks for nothing
  EXPECT_EQ(dependencies.MissingFeed({0, 1, 2}, {true, true}), -1);
  EXPECT_EQ(dependencies.MissingFeed({}, {false, false}), -1);

  // What a fed tensor was computed from is not needed.
  const auto fed = MakeStepGraph(graph, {{"x", "y", "cut"}, {"both"}, {}});
  ASSERT_OK(fed);
  EXPECT_EQ(FeedDependencies(*fed, 1).MissingFeed({0}, {true, false, true}), -1);
}

}  // namespace
}  // namespace tenon
