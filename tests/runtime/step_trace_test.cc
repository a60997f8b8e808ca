// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_trace.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(StepTraceTest, ATraceStopsGrowingAtItsLimit) {
  StepTrace trace;
  NodeTrace node;
  node.name = std::string(1 << 20, 'n');
  for (int i = 0; i < 300; ++i) trace.Add(node);
  const size_t nodes = trace.Take().size();
  EXPECT_GT(nodes, 200u);
  EXPECT_LE(nodes, 256u);
}

}  // namespace
}  // namespace tenon
