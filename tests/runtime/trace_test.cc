// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/trace.h"

#include <gtest/gtest.h>

#include "ops/array/array_ops.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

TEST(RunTraceTest, ATraceStopsGrowingAtItsLimit) {
  RunTrace trace;
  NodeTrace node;
  node.name = std::string(1 << 20, 'n');
  for (int i = 0; i < 300; ++i) trace.Add(node);
  const size_t nodes = trace.Take().size();
  EXPECT_GT(nodes, 200u);
  EXPECT_LE(nodes, 256u);
}

TEST(RunTraceTest, ATraceOfASessionsStepHasEveryNodeThatRan) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const DeviceScope on("/device:CPU:0");  // where no copies are put between them
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  Neg(Square(x, {.name = "square"}), {.name = "y"});
  auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  std::vector<NodeTrace> trace;
  StepOptions options;
  options.trace = &trace;
  ASSERT_OK((*session)->Run({{"x", Tensor::Scalar(2.0f)}}, {"y"}, {}, options));
  ASSERT_EQ(trace.size(), 2u);
  EXPECT_EQ(trace[0].name, "square");
  EXPECT_EQ(trace[1].name, "y");
  EXPECT_LE(trace[0].start_ns, trace[0].end_ns);
}

}  // namespace
}  // namespace tenon
