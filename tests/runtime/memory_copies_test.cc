// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile/memory_copies.h"
#include "ops/cuda/device_kind.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "runtime/device/session_device.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

constexpr std::string_view kGpu = "/job:localhost/replica:0/task:0/device:GPU:0";

/// Says that its memory is not the host's; nothing is allocated of it.
class ElsewhereAllocator final : public Allocator {
 public:
  std::string_view name() const override { return "elsewhere"; }
  void* Allocate(size_t) override { return nullptr; }
  void Free(void*, size_t) override {}
  bool IsHostMemory() const override { return false; }
  int64_t bytes_in_use() const override { return 0; }
};

class DeviceElsewhere final : public Device {
 public:
  explicit DeviceElsewhere(std::string_view name) : name_(name) {}
  const std::string& name() const override { return name_; }
  DeviceKind kind() const override { return kCuda; }
  uint64_t incarnation() const override { return 1; }
  int64_t memory_limit() const override { return 0; }
  Allocator& allocator() override { return allocator_; }
  ResourceStore& resources() override { return TestDevice().resources(); }
  const FileAccess& files() const override { return TestDevice().files(); }

 private:
  const std::string name_;
  ElsewhereAllocator allocator_;
};

class MemoryCopiesTest : public ::testing::Test {
 protected:
  /// Places what has been built on the device, adds the copies, and checks the graph.
  void AddCopies(Device& device) {
    ASSERT_OK(graph_.error());
    for (Node* n : graph_.nodes()) n->set_assigned_device(std::string(kGpu));
    ASSERT_OK(AddMemoryCopies({{&graph_, &device}}));
    ASSERT_OK(graph_.Validate());
    for (const Node* n : graph_.nodes()) EXPECT_EQ(n->assigned_device(), kGpu) << n->name();
  }
  /// The op that feeds input `i` of the node `name`.
  std::string OpBefore(std::string_view name, int i) {
    return graph_.Find(name)->input(i).node->op();
  }
  int Count(std::string_view op) {
    const std::vector<Node*> nodes = graph_.nodes();
    return static_cast<int>(
        std::count_if(nodes.begin(), nodes.end(), [&](const Node* n) { return n->op() == op; }));
  }

  DeviceElsewhere device_{kGpu};
  Graph graph_{AllOps()};
  GraphBuilding building_{graph_};
};

TEST_F(MemoryCopiesTest, NoneAreMadeWhereTheMemoryIsTheHosts) {
  Reshape(Placeholder(DType::kFloat), {2, 3}, {.name = "reshape"});
  const int nodes = graph_.num_nodes();
  AddCopies(TestDevice());
  EXPECT_EQ(graph_.num_nodes(), nodes);
  EXPECT_EQ(OpBefore("reshape", 1), "Const");
}

TEST_F(MemoryCopiesTest, AConstantShapeIsInHostMemoryFromTheStart) {
  Reshape(Placeholder(DType::kFloat), {2, 3}, {.name = "reshape"});
  AddCopies(device_);
  EXPECT_EQ(OpBefore("reshape", 0), "Placeholder");
  EXPECT_EQ(OpBefore("reshape", 1), "HostConst");
  EXPECT_EQ(Count("Const"), 0);
}

TEST_F(MemoryCopiesTest, AConstantMayBeInBothMemories) {
  const Output sizes = Const(Tensor::Vector({2, 3}));
  Reshape(Placeholder(DType::kFloat), sizes, {.name = "reshape"});
  Invert(sizes, {.name = "invert"});
  AddCopies(device_);
  EXPECT_EQ(OpBefore("reshape", 1), "HostConst");
  EXPECT_EQ(OpBefore("invert", 0), "Const");
}

TEST_F(MemoryCopiesTest, AComputedShapeIsCopiedOnceForAllThatWantIt) {
  const Output sizes = Invert(Placeholder(DType::kInt32));
  Fill(sizes, 1.0f, {.name = "first"});
  Fill(sizes, 2.0f, {.name = "second"});
  AddCopies(device_);
  EXPECT_EQ(OpBefore("first", 0), "_CopyToHost");
  EXPECT_EQ(graph_.Find("first")->input(0).node, graph_.Find("second")->input(0).node);
  EXPECT_EQ(OpBefore("first", 1), "Const");
  EXPECT_EQ(Count("_CopyToHost"), 1);
}

TEST_F(MemoryCopiesTest, TheShapeOfSomethingIsInHostMemoryUntilItIsComputedWith) {
  const Output shape = ShapeOf(Placeholder(DType::kFloat));
  Fill(shape, 1.0f, {.name = "fill"});
  Invert(shape, {.name = "invert"});
  AddCopies(device_);
  EXPECT_EQ(OpBefore("fill", 0), "Shape");
  EXPECT_EQ(OpBefore("invert", 0), "_CopyToDevice");
  EXPECT_EQ(Count("_CopyToDevice"), 1);
}

TEST_F(MemoryCopiesTest, FeedsAndFetchesAreInHostMemory) {
  const AttributeMap first = {{"T", DType::kFloat}, {"index", 0}};
  Node* const fed = graph_.AddNode("fed", "_Arg", first, {}).value();
  Node* const neg = graph_.AddNode("neg", "Neg", {{"T", DType::kFloat}}, {{fed, 0}}).value();
  ASSERT_OK(graph_.AddNode("fetched", "_Retval", first, {{neg, 0}}).status());
  AddCopies(device_);
  EXPECT_EQ(OpBefore("neg", 0), "_CopyToDevice");
  EXPECT_EQ(OpBefore("fetched", 0), "_CopyToHost");
}

TEST_F(MemoryCopiesTest, WhatAReferenceRefersToIsInTheDevicesMemory) {
  const AttributeMap of = {{"dtype", DType::kFloat}, {"shape", PartialShape({2})}};
  Node* const variable = graph_.AddNode("variable", "VariableV2", of, {}).value();
  const Output value = Const(Tensor::Vector({1.0f, 2.0f}));
  Node* const assign =
      graph_.AddNode("assign", "Assign", {{"T", DType::kFloat}}, {{variable, 0}, value}).value();
  ASSERT_OK(graph_.AddNode("neg", "Neg", {{"T", DType::kFloat}}, {{assign, 0}}).status());
  ASSERT_OK(graph_.AddNode("shape", "Shape", {{"T", DType::kFloat}}, {{variable, 0}}).status());
  const int nodes = graph_.num_nodes();
  AddCopies(device_);
  EXPECT_EQ(graph_.num_nodes(), nodes);
}

TEST_F(MemoryCopiesTest, IntegersThatCountStayInHostMemory) {
  const Output turns = Add(Identity(Placeholder(DType::kInt32)), 1);
  Fill(Identity(turns), 1.0f, {.name = "fill"});
  AddCopies(device_);
  EXPECT_EQ(OpBefore("fill", 0), "Identity");
  EXPECT_EQ(Count("_CopyToHost"), 0);
  EXPECT_EQ(Count("HostConst"), 1);
  EXPECT_EQ(Count("_CopyToDevice"), 0);
}

TEST_F(MemoryCopiesTest, WhatTheDeviceAloneWantsGoesThereBeforeItIsMoved) {
  const AttributeMap first = {{"T", DType::kFloat}, {"index", 0}};
  Node* const fed = graph_.AddNode("fed", "_Arg", first, {}).value();
  const Output moved = Identity(Identity(Output{fed, 0}), {.name = "moved"});
  Neg(moved, {.name = "neg"});
  AddCopies(device_);
  EXPECT_EQ(OpBefore("neg", 0), "Identity");
  EXPECT_EQ(graph_.Find("moved")->input(0).node->input(0).node->op(), "_CopyToDevice");
}

TEST_F(MemoryCopiesTest, ASenderAndAReceiverAreInHostMemory) {
  const AttributeMap key = {{"tensor_name", "x"},
                            {"send_device", std::string(kGpu)},
                            {"send_device_incarnation", 1},
                            {"recv_device", std::string(kGpu)}};
  AttributeMap recv = key, send = key;
  recv.Set("tensor_type", DType::kFloat);
  send.Set("T", DType::kFloat);
  Node* const received = graph_.AddNode("recv", "_Recv", recv, {}).value();
  Node* const neg = graph_.AddNode("neg", "Neg", {{"T", DType::kFloat}}, {{received, 0}}).value();
  ASSERT_OK(graph_.AddNode("send", "_Send", send, {{neg, 0}}).status());
  AddCopies(device_);
  EXPECT_EQ(OpBefore("neg", 0), "_CopyToDevice");
  EXPECT_EQ(OpBefore("send", 0), "_CopyToHost");
}

/// An edge between two devices, of which the one's part has what `from` makes and the other's what
/// `to` makes of it.
class PeerCopiesTest : public MemoryCopiesTest {
 protected:
  void Cut(const std::string& from, const std::string& to, std::string_view name_of_send = "x") {
    const DType type = from == "Shape" ? DType::kInt32 : DType::kFloat;
    const AttributeMap key = {{"tensor_name", std::string(name_of_send)},
                              {"send_device", std::string(kGpu)},
                              {"send_device_incarnation", 1},
                              {"recv_device", std::string(kPeer)}};
    AttributeMap recv = key, send = key;
    recv.Set("tensor_type", type);
    recv.Set("tensor_name", "x");
    send.Set("T", type);
    const AttributeMap of = {{"T", DType::kFloat}}, fed = {{"T", DType::kFloat}, {"index", 0}};
    Node* const arg = graph_.AddNode("arg", "_Arg", fed, {}).value();
    Node* const made = graph_.AddNode("made", from, of, {{arg, 0}}).value();
    ASSERT_OK(graph_.AddNode("send", "_Send", send, {{made, 0}}).status());
    Node* const received = there_.AddNode("recv", "_Recv", recv, {}).value();
    std::vector<Endpoint> inputs = {{received, 0}};
    if (to == "Fill") {
      const AttributeMap one = {{"dtype", DType::kFloat}, {"value", Tensor::Scalar(1.0f)}};
      inputs.push_back({there_.AddNode("value", "Const", one, {}).value(), 0});
    }
    const DType result = to == "Fill" ? DType::kFloat : type;
    ASSERT_OK(there_.AddNode("user", to, {{"T", result}}, inputs).status());
    for (Node* n : graph_.nodes()) n->set_assigned_device(std::string(kGpu));
    for (Node* n : there_.nodes()) n->set_assigned_device(std::string(kPeer));
    ASSERT_OK(AddMemoryCopies({{&graph_, &device_}, {&there_, &peer_}}));
    ASSERT_OK(graph_.Validate());
    ASSERT_OK(there_.Validate());
  }
  /// What feeds the consumer on the other device.
  std::string OpThere() { return there_.Find("user")->input(0).node->op(); }

  static constexpr std::string_view kPeer = "/job:localhost/replica:0/task:0/device:GPU:1";
  DeviceElsewhere peer_{kPeer};
  Graph there_{AllOps()};
};

TEST_F(PeerCopiesTest, WhatIsMadeAndWantedOnDevicesGoesStraightThere) {
  Cut("Neg", "Neg");
  EXPECT_EQ(Count("_SendToPeer"), 1);
  EXPECT_EQ(Count("_Send") + Count("_CopyToHost"), 0);
  EXPECT_EQ(OpThere(), "_RecvFromPeer");
}

TEST_F(PeerCopiesTest, WhatIsMadeOnTheHostGoesThroughIt) {
  Cut("Shape", "Invert");
  EXPECT_EQ(Count("_SendToPeer"), 0);
  EXPECT_EQ(OpThere(), "_CopyToDevice");
}

TEST_F(PeerCopiesTest, WhatIsWantedOnTheHostIsSentFromThere) {
  Cut("Shape", "Fill");
  EXPECT_EQ(Count("_SendToPeer"), 0);
  EXPECT_EQ(OpThere(), "_Recv");
}

TEST_F(PeerCopiesTest, AReceiverWithoutASenderStaysOnTheHost) {
  Cut("Neg", "Neg", "y");
  EXPECT_EQ(OpBefore("send", 0), "_CopyToHost");
  EXPECT_EQ(OpThere(), "_CopyToDevice");
}

TEST_F(MemoryCopiesTest, StringsStayInHostMemory) {
  const Output text = Const(Tensor::Vector<std::string>({"a", "b"}));
  ASSERT_OK(graph_.AddNode("join", "ReduceJoin", {}, {text, Const(0)}).status());
  AddCopies(device_);
  EXPECT_EQ(OpBefore("join", 0), "Const");
}

}  // namespace
}  // namespace tenon::testing
