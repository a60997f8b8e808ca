// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/tiny_registry.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using tenon::testing::IsError;
using tenon::testing::kInvalid;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class GraphTest : public ::testing::Test {
 protected:
  Node* Placeholder(std::string_view name, DType dtype = DType::kFloat) {
    return *graph_.AddNode(name, "Placeholder", {{"dtype", dtype}}, {});
  }
  Node* Op(std::string_view name, std::string_view op, const std::vector<Endpoint>& inputs,
           AttributeMap attrs = {}) {
    attrs.Set("T", DType::kFloat);
    auto node = graph_.AddNode(name, op, std::move(attrs), inputs);
    EXPECT_OK(node);
    return *node;
  }
  std::vector<std::string> Names(const std::vector<Node*>& nodes) {
    std::vector<std::string> names;
    for (const Node* n : nodes) names.push_back(n->name());
    return names;
  }

  Graph graph_{TinyRegistry()};
};

TEST_F(GraphTest, EdgesAreSeenFromBothEnds) {
  Node* a = Placeholder("a");
  Node* sum = Op("sum", "Add", {{a, 0}, {a, 0}});
  EXPECT_EQ(sum->input(1), (Endpoint{a, 0}));
  ASSERT_THAT(a->out_edges(), SizeIs(2));
  EXPECT_EQ(a->out_edges()[1].dst, sum);
  EXPECT_EQ(a->out_edges()[1].input, 1);
  EXPECT_EQ(graph_.Find("sum"), sum);
  EXPECT_EQ(graph_.Find("nothing"), nullptr);
}

TEST_F(GraphTest, ConnectingReplacesWhatWasThere) {
  Node *a = Placeholder("a"), *b = Placeholder("b");
  Node* i = Op("i", "Identity", {{a, 0}});
  ASSERT_OK(graph_.Connect({b, 0}, i, 0));
  EXPECT_THAT(a->out_edges(), IsEmpty());
  EXPECT_EQ(i->input(0).node, b);
}

TEST_F(GraphTest, WrongConnectionsAreRefused) {
  Node *a = Placeholder("a"), *n = Placeholder("n", DType::kInt32);
  Node* i = Op("i", "Identity", {{a, 0}});
  EXPECT_THAT(graph_.Connect({a, 0}, i, 1), IsError(kInvalid, "'i' has no input 1; it has 1"));
  EXPECT_THAT(graph_.Connect({a, 1}, i, 0), IsError(kInvalid, "has no output 1; it has 1"));
  EXPECT_THAT(graph_.Connect({n, 0}, i, 0),
              IsError(kInvalid, "passed int32 from n:0 incompatible with expected float of Iden"));
}

TEST_F(GraphTest, ANodeThatCannotBeAddedLeavesNothing) {
  Node* a = Placeholder("a");
  EXPECT_THAT(graph_.AddNode("a", "NoOp", {}), IsError(StatusCode::kAlreadyExists, "'a'"));
  EXPECT_THAT(graph_.AddNode("s", "Add", {{"T", DType::kFloat}}, {{a, 0}}),
              IsError(kInvalid, "node 's' (Add): found 1 inputs, wanted 2"));
  EXPECT_EQ(graph_.Find("s"), nullptr);
  EXPECT_EQ(graph_.num_nodes(), 1);
}

TEST_F(GraphTest, ControlEdgesAreKeptOnceAndRemoved) {
  Node *a = Placeholder("a"), *b = Placeholder("b");
  graph_.AddControlEdge(a, b);
  graph_.AddControlEdge(a, b);
  EXPECT_THAT(b->control_inputs(), ElementsAre(a));
  EXPECT_THAT(a->out_edges(), SizeIs(1));
  graph_.RemoveControlEdge(a, b);
  EXPECT_THAT(b->control_inputs(), IsEmpty());
  EXPECT_THAT(a->out_edges(), IsEmpty());
}

TEST_F(GraphTest, RemovingANodeLeavesItsConsumersUnconnected) {
  Node* a = Placeholder("a");
  Node* i = Op("i", "Identity", {{a, 0}});
  Node* last = Op("last", "Identity", {{i, 0}});
  graph_.AddControlEdge(i, a);
  graph_.RemoveNode(i);
  EXPECT_THAT(a->control_inputs(), IsEmpty());
  EXPECT_THAT(a->out_edges(), IsEmpty());
  EXPECT_EQ(last->input(0).node, nullptr);
  EXPECT_THAT(Names(graph_.nodes()), ElementsAre("a", "last"));
  EXPECT_THAT(graph_.Validate(), IsError(kInvalid, "input 0 of node 'last' (Identity) is not"));
}

TEST_F(GraphTest, RemovingTheLastNodesUndoesAddingThem) {
  Node* a = Placeholder("a");
  Node* i = Op("i", "Identity", {{a, 0}});
  graph_.AddControlEdge(a, i);
  Op("j", "Identity", {{i, 0}});
  graph_.RemoveNodesFrom(1);
  EXPECT_EQ(graph_.num_ids(), 1);
  EXPECT_THAT(a->out_edges(), IsEmpty());
  EXPECT_EQ(Op("i", "Identity", {{a, 0}})->id(), 1);
}

TEST_F(GraphTest, AVariableGoesWithItsNodes) {
  const auto add = [this](std::string_view name) {
    Node* const ref = Placeholder(name);
    Node* const value = Op(StrCat(name, "/read"), "Identity", {{ref, 0}});
    Node* const initializer = Op(StrCat(name, "/Assign"), "Identity", {{ref, 0}});
    graph_.variables().push_back({ref, value, initializer, true});
  };
  add("a"), add("b"), add("c");
  graph_.RemoveNodes({graph_.Find("b/Assign")});
  ASSERT_EQ(graph_.variables().size(), 2);
  EXPECT_EQ(graph_.variables()[1].ref->name(), "c");
  graph_.RemoveNode(graph_.Find("a"));
  ASSERT_EQ(graph_.variables().size(), 1);
  graph_.RemoveNodesFrom(graph_.Find("c/read")->id());
  EXPECT_THAT(graph_.variables(), IsEmpty());
}

TEST_F(GraphTest, UsesAreReplaced) {
  Node *a = Placeholder("a"), *b = Placeholder("b");
  Node* sum = Op("sum", "Add", {{a, 0}, {a, 0}});
  graph_.AddControlEdge(a, sum);
  ASSERT_OK(graph_.ReplaceUses({a, 0}, {b, 0}));
  EXPECT_EQ(sum->input(0).node, b);
  EXPECT_EQ(sum->input(1).node, b);
  EXPECT_THAT(sum->control_inputs(), ElementsAre(a));
}

TEST_F(GraphTest, TheOrderPutsNodesAfterWhatFeedsThem) {
  Node* a = Placeholder("a");
  Node* i = Op("i", "Identity", {{a, 0}});
  Node* b = Placeholder("b");
  graph_.AddControlEdge(b, i);
  EXPECT_THAT(Names(*graph_.TopologicalOrder()), ElementsAre("a", "b", "i"));
  EXPECT_THAT(Names(*graph_.TopologicalOrder(1)), ElementsAre("b", "i"));
}

TEST_F(GraphTest, ACycleIsLegalOnlyThroughNextIteration) {
  Node* a = Placeholder("a");
  Node* merge = Op("m", "Merge", {{a, 0}, {a, 0}}, {{"N", 2}});
  Node* i = Op("i", "Identity", {{merge, 0}});
  Node* next = Op("n", "NextIteration", {{i, 0}});
  ASSERT_OK(graph_.Connect({next, 0}, merge, 1));
  EXPECT_OK(graph_.Validate());
  ASSERT_OK(graph_.Connect({i, 0}, merge, 1));
  EXPECT_THAT(graph_.Validate(), IsError(kInvalid, "does not go through NextIteration; it holds"));
}

TEST_F(GraphTest, NamesAreMadeUnique) {
  Placeholder("a");
  EXPECT_EQ(graph_.UniqueName("b"), "b");
  EXPECT_EQ(graph_.UniqueName("a"), "a_1");
  Placeholder("a_1");
  EXPECT_EQ(graph_.UniqueName("a"), "a_2");
}

TEST_F(GraphTest, ACloneIsIndependent) {
  Node* a = Placeholder("a");
  Op("i", "Identity", {{a, 0}});
  Graph copy = graph_.Clone();
  graph_.RemoveNode(graph_.Find("i"));
  ASSERT_NE(copy.Find("i"), nullptr);
  EXPECT_EQ(copy.Find("i")->input(0).node, copy.Find("a"));
  EXPECT_NE(copy.Find("a"), a);
  EXPECT_THAT(copy.Find("a")->out_edges(), SizeIs(1));
}

TEST(TensorNameTest, NamesAreTakenApart) {
  EXPECT_EQ(ParseTensorName("a/b:3")->index, 3);
  EXPECT_EQ(ParseTensorName("a/b:3")->node, "a/b");
  EXPECT_EQ(ParseTensorName("a")->index, 0);
  for (const char* text : {"", ":0", "a:", "a:x", "a:-1", "^a", "a:b:0", "a:99999999999"}) {
    EXPECT_THAT(ParseTensorName(text), IsError(kInvalid, "is not a tensor name")) << text;
  }
}

TEST(AnnotateTest, TheNodeIsNamedOnceWithTensorFlowsMarker) {
  const Status once = AnnotateWithNode(InvalidArgument("bad"), "d/x", "Add", "/cpu:0");
  EXPECT_EQ(Message(once), "node 'd/x' (Add) on /cpu:0: bad\n\t [[{{node d/x}}]]");
  EXPECT_EQ(Message(AnnotateWithNode(once, "y", "Mul", "")), Message(once));
  EXPECT_OK(AnnotateWithNode(OkStatus(), "x", "Add", ""));
}

}  // namespace
}  // namespace tenon
