// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "data/files/file.h"
#include "ops/register.h"
#include "proto/graph.pb.h"
#include "tests/testing/op_runner.h"

// Every op that TensorFlow's own graphs use is one of ours.

namespace tenon::testing {
namespace {

std::string DataFile(std::string_view name) {
  const char* root = std::getenv("TENON_SOURCE_DIR");
  return JoinPath(StrCat(root == nullptr ? "." : root, "/tests/data"), name);
}

/// Ops of queues, which are a family of their own.
bool IsQueueOp(const std::string& op) { return op.find("Queue") != std::string::npos; }

TEST(SampleGraphs, UseOnlyOpsThatAreRegistered) {
  for (const char* name : {"mnist_ref", "mnist_resource", "cond_v1", "while_v1", "summary"}) {
    const auto bytes = ReadFileToString(DataFile(StrCat("graphs/", name, ".pb")));
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    GraphDef graph;
    ASSERT_TRUE(graph.ParseFromString(*bytes));
    ASSERT_GT(graph.node_size(), 0);
    for (const NodeDef& node : graph.node()) {
      EXPECT_NE(AllOps().Find(node.op()), nullptr) << name << " uses " << node.op();
    }
  }
}

TEST(SampleGraphs, TracesOfClustersUseOnlyOpsThatAreRegistered) {
  std::ifstream file(DataFile("tf/trace_ops.txt"));
  ASSERT_TRUE(file);
  int count = 0;
  for (std::string op; std::getline(file, op); ++count) {
    if (IsQueueOp(op)) continue;
    EXPECT_NE(AllOps().Find(op), nullptr) << op;
  }
  EXPECT_GT(count, 50);
}

}  // namespace
}  // namespace tenon::testing
