// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile/graph_extension.h"

#include <gmock/gmock.h>

#include "tests/runtime/function_graphs.h"
#include "tests/testing/cpu_devices.h"
#include "tests/testing/cpu_time.h"

namespace tenon::testing {
namespace {

constexpr char kTask[] = "/job:localhost/replica:0/task:0";

std::string Variable() {
  return "attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { shape {} } }";
}

/// The graph of a session, which gains what the test puts into def_.
class GraphExtensionTest : public FunctionsTest {
 protected:
  /// Makes what is in def_ the graph.
  void Begin() {
    auto graph = GraphFromProto(def_, AllOps());
    ASSERT_OK(graph);
    graph_ = *std::move(graph);
    ASSERT_OK(compiler_.Expand(&graph_));
    ASSERT_OK(compiler_.Place(&graph_, PlacementOptions()));
    def_.Clear();
  }
  /// Adds what is in def_, and takes it away again unless it is to be kept.
  Status Extend(bool keep = true) {
    GraphExtension extension(&graph_);
    TENON_RETURN_IF_ERROR(ExtendGraphFromProto(def_, &graph_));
    TENON_RETURN_IF_ERROR(extension.Expand(compiler_));
    TENON_RETURN_IF_ERROR(compiler_.Place(
        &graph_, {.allow_soft_placement = soft_placement_, .first_id = extension.first_id()}));
    if (keep) extension.Keep();
    return OkStatus();
  }
  std::string Text() const {
    GraphDef def;
    EXPECT_OK(GraphToProto(graph_, &def));
    std::string consumers;
    for (const tenon::Node* n : graph_.nodes()) {
      for (const OutEdge& e : n->out_edges()) StrAppend(&consumers, n->name(), ">", e.dst->name());
    }
    return StrCat(def.DebugString(), consumers, graph_.num_ids());
  }
  std::string DeviceOf(const std::string& node) const {
    const tenon::Node* const found = graph_.Find(node);
    return found == nullptr ? "no node" : found->assigned_device().substr(sizeof(kTask));
  }

  const std::vector<std::unique_ptr<Device>> devices_ = MakeCpuDevices(kTask, 2, "localhost");
  const Compiler compiler_{{.devices = {devices_[0].get(), devices_[1].get()}}, {}};
  Graph graph_{AllOps()};
  bool soft_placement_ = false;
};

TEST_F(GraphExtensionTest, WhatIsNotKeptIsGone) {
  Input();
  Node({"v", "VariableV2", {}, Variable() + " device: '/cpu:1'"});
  Begin();
  const std::string before = Text();
  Doubling();
  Node({"f", "PartitionedCall", {"x"}, Types(kFloat1, kFloat1) + Calls("f", "Double")});
  Node({"sum", "AddV2", {"f", "v", "^x"}, Float()});
  ASSERT_OK(Extend(/*keep=*/false));
  EXPECT_EQ(Text(), before);
  ASSERT_OK(Extend());
  EXPECT_EQ(graph_.Find("f/sum")->op(), "AddV2");
  EXPECT_EQ(graph_.Find("sum")->input(0).node, graph_.Find("f"));
  for (const tenon::Node* n : graph_.nodes()) EXPECT_FALSE(n->assigned_device().empty());
}

TEST_F(GraphExtensionTest, CallsAreReplacedWhenTheirFunctionComes) {
  Input();
  Node({"f", "PartitionedCall", {"x"}, Types(kFloat1, kFloat1) + Calls("f", "Double")});
  Node({"after", "Neg", {"f"}, Float()});
  Begin();
  const std::string before = Text();
  ASSERT_EQ(graph_.Find("f")->op(), "PartitionedCall");
  Node({"more", "Neg", {"after"}, Float()});
  ASSERT_OK(Extend(/*keep=*/false));
  EXPECT_EQ(Text(), before);
  Doubling();
  ASSERT_OK(Extend(/*keep=*/false));
  EXPECT_EQ(Text(), before);
  ASSERT_OK(Extend());
  EXPECT_EQ(graph_.Find("f")->op(), "Identity");
  EXPECT_EQ(graph_.Find("after")->input(0).node, graph_.Find("f"));
  EXPECT_EQ(graph_.Find("f")->input(0).node, graph_.Find("f/sum"));
  EXPECT_EQ(DeviceOf("f/sum"), "device:CPU:0");
}

TEST_F(GraphExtensionTest, NewNodesGoWhereTheirOldCompanionsAre) {
  Input();
  Node({"v", "VariableV2", {}, Variable() + " device: '/cpu:1'"});
  Node({"handle", "VarHandleOp", {}, Variable() + " device: '/cpu:1'"});
  Node({"between", "Identity", {"handle"}, "attr { key: 'T' value { type: DT_RESOURCE } }"});
  Begin();
  Node({"add", "AssignAdd", {"v", "x"}, Float()});
  Node({"again", "AssignAdd", {"add", "x"}, Float()});
  Node({"beside", "Neg", {"x"}, Float() + "attr { key: '_class' value { list { s: 'loc:@v' } } }"});
  const std::string read = "attr { key: 'dtype' value { type: DT_FLOAT } }";
  Node({"read", "ReadVariableOp", {"between"}, read});
  Node({"yields", "ReadVariableOp", {"between"}, read + " device: '/cpu:0'"});
  Node({"alone", "Neg", {"v"}, Float()});
  ASSERT_OK(Extend());
  for (const char* node : {"add", "again", "beside", "read", "yields"}) {
    EXPECT_EQ(DeviceOf(node), "device:CPU:1") << node;
  }
  EXPECT_EQ(DeviceOf("alone"), "device:CPU:0");

  const std::string before = Text();
  def_.Clear();
  Node({"elsewhere", "AssignAdd", {"again", "x"}, Float() + " device: '/cpu:0'"});
  EXPECT_THAT(Extend(), IsError(StatusCode::kInvalidArgument, "Cannot assign a device for"));
  EXPECT_EQ(Text(), before);
}

TEST_F(GraphExtensionTest, WishesAreLessThanWhereVariablesAreOrAreErrors) {
  Input();
  Node({"v", "VariableV2", {}, Variable() + " device: '/cpu:1'"});
  Begin();
  const std::string before = Text();
  Node({"add", "AssignAdd", {"v", "x"}, Float() + " device: '/cpu:0'"});
  EXPECT_THAT(Extend(), IsError(StatusCode::kInvalidArgument, "ask for different devices"));
  EXPECT_EQ(Text(), before);
  soft_placement_ = true;
  ASSERT_OK(Extend());
  EXPECT_EQ(DeviceOf("add"), "device:CPU:1");
}

TEST_F(GraphExtensionTest, ABodyGoesWhereTheOldReadersOfItsVariableAre) {
  const std::string resource = "type: DT_RESOURCE";
  Node({"f", "PartitionedCall", {}, Types("", resource) + Calls("f", "Handle")});
  Node({"read",
        "ReadVariableOp",
        {"f"},
        "attr { key: 'dtype' value { type: DT_FLOAT } } device: '/cpu:1'"});
  Begin();
  ASSERT_EQ(DeviceOf("read"), "device:CPU:1");
  Function("Handle", {}, {{"y", "v:resource:0"}}, {{"v", "VarHandleOp", {}, Variable()}}, "",
           resource);
  ASSERT_OK(Extend());
  EXPECT_EQ(DeviceOf("f/v"), "device:CPU:1");
  EXPECT_EQ(DeviceOf("read"), "device:CPU:1");
}

TEST_F(GraphExtensionTest, CostsWhatIsNew) {
  const auto seconds_with = [&](int nodes) {
    Input();
    for (int i = 0; i < nodes; ++i) Node({StrCat("n", i), "Neg", {"x"}, Float()});
    Begin();
    const CpuTime time;
    for (int i = 0; i < 100; ++i) {
      def_.Clear();
      Node({StrCat("more", i), "Neg", {"n0"}, Float()});
      EXPECT_OK(Extend());
    }
    def_.Clear();
    return time.seconds();
  };
  const double small = seconds_with(10);
  EXPECT_LT(seconds_with(30000), 20 * small);
}

}  // namespace
}  // namespace tenon::testing
