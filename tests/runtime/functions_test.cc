// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <limits>

#include "core/op/function.h"
#include "core/proto/proto_io_graph.h"
#include "ops/register.h"
#include "runtime/functions/expansion.h"
#include "runtime/session/local_session.h"
#include "tests/runtime/function_graphs.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

TEST_F(FunctionsTest, ACallIsItsBody) {
  Doubling();
  Input();
  Node({"f", "PartitionedCall", {"x"}, Types(kFloat1, kFloat1) + Calls("f", "Double")});
  Node({"after", "Neg", {"f"}, Float()});
  EXPECT_EQ(*Run(X(3), "f:0"), 6);
  EXPECT_EQ(*Run(X(3), "after:0"), -6);
  EXPECT_EQ(*Run(X(3), "f/sum:0"), 6);
  // The output of a call is fed as any other tensor.
  EXPECT_EQ(*Run({{"f:0", Tensor::Scalar(1.0f)}}, "after:0"), -1);
}

TEST_F(FunctionsTest, CallsNestAndHaveSeveralResults) {
  Doubling();
  Function("Both", {"a", "b"}, {{"twice", "d:output:0"}, {"same", "b"}},
           {{"d", "PartitionedCall", {"a"}, Types(kFloat1, kFloat1) + Calls("f", "Double")}});
  Input();
  Node({"f", "PartitionedCall", {"x", "x"}, Types(kFloat2, kFloat2) + Calls("f", "Both")});
  Node({"g", "PartitionedCall", {"f:0", "f:1"}, Types(kFloat2, kFloat2) + Calls("f", "Both")});
  EXPECT_EQ(*Run(X(3), "g:0"), 12);
  EXPECT_EQ(*Run(X(3), "g:1"), 3);
}

TEST_F(FunctionsTest, ANodeMayHaveAFunctionAsItsOp) {
  Function("Squared", {"x"}, {{"y", "mul:z:0"}},
           {{"mul", "Mul", {"x", "x"}, "attr { key: 'T' value { placeholder: 'T' } }"}},
           "attr { name: 'T' type: 'type' }", "type_attr: 'T'");
  Input();
  Input("i", "DT_INT32");
  Node({"f", "Squared", {"x"}, Float()});
  Node({"g", "Squared", {"i"}, "attr { key: 'T' value { type: DT_INT32 } }"});
  EXPECT_EQ(*Run(X(3), "f"), 9);
  const auto ints = session_->Run({{"i", Tensor::Scalar(-4)}}, {"g"});
  ASSERT_OK(ints);
  EXPECT_EQ((*ints)[0].scalar<int32_t>(), 16);
}

TEST_F(FunctionsTest, ACaseTakesTheBranchOfItsNumberOrTheLast) {
  for (const int i : {0, 1, 2}) {
    Function(StrCat("Branch", i), {"x"}, {{"y", "sum:z:0"}},
             {{"c", "Const", {}, FloatConst(static_cast<float>(10 * i))},
              {"sum", "AddV2", {"x", "c:output:0"}, Float()}});
  }
  Input();
  Input("i", "DT_INT32");
  Node({"f",
        "Case",
        {"i", "x"},
        Types(kFloat1, kFloat1) + "attr { key: 'branches' value { list { func { name: 'Branch0' } "
                                  "func { name: 'Branch1' } "
                                  "func { name: 'Branch2' } } } }"});
  for (const auto& [i, wanted] :
       std::vector<std::pair<int, float>>{{0, 1}, {1, 11}, {2, 21}, {3, 21}, {-1, 21}}) {
    EXPECT_EQ(*Run({{"i", Tensor::Scalar(i)}, {"x", Tensor::Scalar(1.0f)}}, "f"), wanted) << i;
  }
}

/// x doubled until it is at least 100.
class LoopFunctionsTest : public FunctionsTest {
 protected:
  void SetUp() override {
    Doubling();
    // The condition gives a bool: a signature of its own.
    AddTo(
        "signature { name: 'Small' input_arg { name: 'x' type: DT_FLOAT } "
        "output_arg { name: 'y' type: DT_BOOL } } "
        "node_def { name: 'limit' op: 'Const' " +
            FloatConst(100) +
            " } "
            "node_def { name: 'less' op: 'Less' input: 'x' input: 'limit:output:0' " +
            Float() +
            " } "
            "ret { key: 'y' value: 'less:z:0' }",
        def_.mutable_library()->add_function());
    Input();
  }
  std::string Loop(const std::string& body) {
    return "attr { key: 'T' value { list { type: DT_FLOAT } } }" + Calls("cond", "Small") +
           Calls("body", body);
  }
};

TEST_F(LoopFunctionsTest, AWhileRunsItsBodyWhileTheConditionHolds) {
  Node({"f", "StatelessWhile", {"x"}, Loop("Double")});
  EXPECT_EQ(*Run(X(3), "f"), 192);
  EXPECT_EQ(*Run(X(300), "f"), 300);
}

TEST_F(LoopFunctionsTest, LoopsNestAndAFunctionWithOneMayBeCalledTwice) {
  Function("Rise", {"x"}, {{"y", "loop:output:0"}}, {{"loop", "While", {"x"}, Loop("Double")}});
  // One more than doubled to 100 or more, halved until it is less: a loop in each iteration.
  Function("Halve", {"x"}, {{"y", "half:z:0"}},
           {{"rise", "PartitionedCall", {"x"}, Types(kFloat1, kFloat1) + Calls("f", "Rise")},
            {"two", "Const", {}, FloatConst(1.5)},
            {"half", "RealDiv", {"rise:output:0", "two:output:0"}, Float()}});
  Node({"f", "PartitionedCall", {"x"}, Types(kFloat1, kFloat1) + Calls("f", "Rise")});
  Node({"g", "PartitionedCall", {"f"}, Types(kFloat1, kFloat1) + Calls("f", "Halve")});
  Node({"h", "While", {"x"}, Loop("Halve")});
  EXPECT_EQ(*Run(X(3), "g"), 128);
  EXPECT_EQ(*Run(X(3), "h"), 128);
}

TEST_F(LoopFunctionsTest, AGradientOfAFunctionIsDerivedWithinALoop) {
  Function("CubeOf", {"a"}, {{"y", "cube:z:0"}},
           {{"square", "Mul", {"a", "a"}, Float()}, {"cube", "Mul", {"square:z:0", "a"}, Float()}});
  Function("Slope", {"x"}, {{"y", "slope:output:0"}},
           {{"one", "Const", {}, FloatConst(1)},
            {"slope",
             "SymbolicGradient",
             {"x", "one:output:0"},
             Types(kFloat2, kFloat1) + Calls("f", "CubeOf")}});
  Node({"f", "While", {"x"}, Loop("Slope")});
  EXPECT_EQ(*Run(X(2), "f"), 3 * 12 * 12);
}

/// A For from x on: x becomes 10 x + the number.
class CountedLoopTest : public FunctionsTest {
 protected:
  void SetUp() override {
    AddTo(
        "signature { name: 'Append' input_arg { name: 'i' type: DT_INT32 } "
        "input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT } } "
        "node_def { name: 'ten' op: 'Const' " +
            FloatConst(10) +
            " } node_def { name: 'digit' op: 'Cast' input: 'i' "
            "attr { key: 'SrcT' value { type: DT_INT32 } } "
            "attr { key: 'DstT' value { type: DT_FLOAT } } } "
            "node_def { name: 'shifted' op: 'Mul' input: 'x' input: 'ten:output:0' " +
            Float() +
            " } node_def { name: 'sum' op: 'AddV2' input: 'shifted:z:0' input: 'digit:y:0' " +
            Float() + " } ret { key: 'y' value: 'sum:z:0' }",
        def_.mutable_library()->add_function());
    Input();
    for (const char* name : {"start", "limit", "delta"}) {
      Node({name, "Placeholder", {}, "attr { key: 'dtype' value { type: DT_INT32 } }"});
    }
    Node({"f",
          "For",
          {"start", "limit", "delta", "x"},
          "attr { key: 'T' value { list { type: DT_FLOAT } } }" + Calls("body", "Append")});
  }
  StatusOr<float> Count(const Tensor& start, int limit, int delta, float x) {
    return Run({{"start", start},
                {"limit", Tensor::Scalar(limit)},
                {"delta", Tensor::Scalar(delta)},
                {"x", Tensor::Scalar(x)}},
               "f");
  }
  StatusOr<float> Count(int start, int limit, int delta, float x) {
    return Count(Tensor::Scalar(start), limit, delta, x);
  }
};

TEST_F(CountedLoopTest, AForRunsItsBodyOnceForEachNumber) {
  EXPECT_EQ(*Count(1, 4, 1, 7), 7123);
  EXPECT_EQ(*Count(0, 5, 2, 7), 7024);
  EXPECT_EQ(*Count(5, 0, -2, 7), 7531);
  EXPECT_EQ(*Count(3, 3, 1, 7), 7);
  EXPECT_EQ(*Count(3, 3, 0, 7), 7);
  constexpr int kMost = std::numeric_limits<int>::max(), kLeast = std::numeric_limits<int>::min();
  EXPECT_EQ(*Count(kMost - 1, kMost, 2, 0), 2147483646.0f);
  EXPECT_EQ(*Count(kLeast, kMost, kMost, 0), (-2147483648.0f * 10 - 1) * 10 + 2147483646.0f);
}

TEST_F(CountedLoopTest, StepsThatLeadAwayAreAnError) {
  for (const auto& [limit, delta] : {std::pair(4, -1), std::pair(-4, 1), std::pair(4, 0)}) {
    EXPECT_THAT(Count(0, limit, delta, 1).status(),
                IsError(StatusCode::kInvalidArgument, "Invalid start/limit/delta"));
  }
  EXPECT_THAT(Count(Tensor::Vector({1}), 4, 1, 1).status(),
              IsError(StatusCode::kInvalidArgument, "[1]"));
}

TEST_F(FunctionsTest, ARemoteCallRunsWhereItsTargetSays) {
  Function("Minus", {"x"}, {{"y", "there:y:0"}},
           {{"there", "Neg", {"x"}, Float() + " device: '/job:evaluator/device:CPU:7'"}});
  Input();
  const auto target = [](const std::string& device) {
    return StrCat(
        "attr { key: 'dtype' value { type: DT_STRING } } attr { key: 'value' value { "
        "tensor { dtype: DT_STRING tensor_shape {} string_val: '",
        device, "' } } }");
  };
  Node({"cpu1", "Const", {}, target("/device:CPU:1")});
  Node({"worker", "Const", {}, target("/job:worker/task:2")});
  Node({"fed", "Placeholder", {}, "attr { key: 'dtype' value { type: DT_STRING } }"});
  const std::string call = Types(kFloat1, kFloat1) + Calls("f", "Minus");
  Node({"f", "RemoteCall", {"cpu1", "x"}, call + " device: '/device:CPU:0'"});
  const GraphDef here = def_;
  Node({"g", "RemoteCall", {"worker", "x"}, call + " device: '/job:ps/device:CPU:0'"});
  auto graph = GraphFromProto(def_, AllOps());
  ASSERT_OK(graph);
  ASSERT_OK(ExpandFunctions(&*graph, 100));
  EXPECT_EQ(graph->Find("f/there")->requested_device(), "/device:CPU:1");
  EXPECT_EQ(graph->Find("f")->requested_device(), "/device:CPU:0");
  EXPECT_EQ(graph->Find("g/there")->requested_device(), "/job:worker/task:2/device:CPU:0");
  def_ = here;
  ASSERT_OK(Open(2));
  EXPECT_EQ(*Run(X(3), "f"), -3);
  Node({"h", "RemoteCall", {"fed", "x"}, call});
  ASSERT_OK(Open(2));
  EXPECT_EQ(*Run(X(3), "f"), -3);
  EXPECT_THAT(Run(X(3), "h"), IsError(StatusCode::kUnimplemented, "its target must be a constant"));
}

TEST_F(FunctionsTest, GradientsOfFunctionsAreDerivedOrGiven) {
  Function("Product", {"a", "b"}, {{"y", "mul:z:0"}}, {{"mul", "Mul", {"a", "b"}, Float()}});
  Function(
      "Cube", {"a"}, {{"y", "p:output:0"}},
      {{"sq", "Mul", {"a", "a"}, Float()},
       {"p", "PartitionedCall", {"sq:z:0", "a"}, Types(kFloat2, kFloat1) + Calls("f", "Product")}});
  Function("Ten", {"a", "dy"}, {{"dx", "ten:output:0"}}, {{"ten", "Const", {}, FloatConst(10)}});
  Function("Odd", {"a"}, {{"y", "a"}}, {});
  AddTo("function_name: 'Odd' gradient_func: 'Ten'", def_.mutable_library()->add_gradient());
  Input();
  Node({"dy", "Const", {}, FloatConst(2)});
  Node({"g", "SymbolicGradient", {"x", "dy"}, Types(kFloat2, kFloat1) + Calls("f", "Cube")});
  Node({"h", "SymbolicGradient", {"x", "dy"}, Types(kFloat2, kFloat1) + Calls("f", "Odd")});
  EXPECT_EQ(*Run(X(3), "g"), 54);
  EXPECT_EQ(*Run(X(3), "h"), 10);
}

TEST_F(FunctionsTest, BodiesSpanDevices) {
  Function("Away", {"x"}, {{"y", "there:y:0"}},
           {{"there", "Neg", {"x"}, Float() + " device: '/device:CPU:1'"},
            {"here", "Neg", {"x"}, Float()}});
  Input();
  Node({"f",
        "PartitionedCall",
        {"x"},
        Types(kFloat1, kFloat1) + Calls("f", "Away") + " device: '/device:CPU:0'"});
  ASSERT_OK(Open(2));
  EXPECT_EQ(*Run(X(3), "f"), -3);
}

TEST_F(FunctionsTest, ALibraryGoesThroughAGraph) {
  Doubling();
  Function("Same", {"x"}, {{"y", "x"}}, {});
  AddTo("function_name: 'Double' gradient_func: 'Same'", def_.mutable_library()->add_gradient());
  const auto graph = GraphFromProto(def_, AllOps());
  ASSERT_OK(graph);
  GraphDef back;
  ASSERT_OK(GraphToProto(*graph, &back));
  EXPECT_EQ(back.library().SerializeAsString(), def_.library().SerializeAsString());
  // The same again is no mistake, another body is.
  Graph extended = graph->Clone();
  ASSERT_OK(ExtendGraphFromProto(def_, &extended));
  *def_.mutable_library()->mutable_function(0)->mutable_node_def(0)->mutable_op() = "Mul";
  EXPECT_THAT(ExtendGraphFromProto(def_, &extended),
              IsError(StatusCode::kInvalidArgument, "a different function with the same name"));
  EXPECT_EQ(extended.functions().Find("Double")->nodes[0].op, "AddV2");
}

TEST_F(FunctionsTest, WhatIsWrongIsSaid) {
  const auto error_of = [&](const NodeText& node, StatusCode code, std::string_view message) {
    session_ = nullptr;
    Node(node);
    // Only steps that need the node fail.
    ASSERT_OK(Open());
    EXPECT_EQ(*Run(X(3), "right"), 6);
    EXPECT_THAT(session_->Run(X(3), {}, {"f"}).status(), IsError(code, message));
    def_.mutable_node()->RemoveLast();
  };
  Doubling();
  Input();
  Input("i", "DT_INT32");
  Node({"right", "PartitionedCall", {"x"}, Types(kFloat1, kFloat1) + Calls("f", "Double")});
  Function("Self", {"x"}, {{"y", "f:output:0"}},
           {{"f", "PartitionedCall", {"x"}, Types(kFloat1, kFloat1) + Calls("f", "Self")}});
  Function("Lost", {"x"}, {{"y", "nowhere:z:0"}}, {});
  Function("None", {"x"}, {}, {});
  Function("Unknown", {"x"}, {{"y", "x"}}, {{"n", "NoSuchOp", {}}});
  Function("Few", {"x"}, {{"y", "x"}}, {{"n", "AddV2", {"x"}, Float()}});
  const std::string one = Types(kFloat1, kFloat1);
  constexpr StatusCode kWrong = StatusCode::kInvalidArgument;
  const auto call = [&](const std::string& function) {
    return NodeText{"f", "PartitionedCall", {"x"}, one + Calls("f", function)};
  };
  Function("Caller", {"x"}, {{"y", "f:output:0"}},
           {{"f", "PartitionedCall", {"x"}, one + Calls("f", "Nobody")}});
  error_of(call("Caller"), kWrong,
           "node 'f/f' (PartitionedCall): the graph's library has no function 'Nobody'");
  error_of(call("Self"), StatusCode::kUnimplemented, "function 'Self' is called within itself");
  error_of(call("Lost"), kWrong, "function 'Lost': 'nowhere:z:0' is not there");
  error_of(call("None"), kWrong, "the function has 0 results, the node 1 outputs");
  error_of(call("Unknown"), StatusCode::kNotFound, "Op type not registered 'NoSuchOp'");
  error_of(call("Few"), kWrong, "node 'n' (AddV2): found 1 inputs, wanted 2");
  error_of({"f", "PartitionedCall", {"i"}, Types("type: DT_INT32", kFloat1) + Calls("f", "Double")},
           kWrong, "argument 0 is float, found int32");
  error_of({"f", "PartitionedCall", {"x", "x"}, Types(kFloat2, kFloat1) + Calls("f", "Double")},
           kWrong, "it takes 1 arguments, found 2");
  error_of({"f",
            "StatelessIf",
            {"x", "x"},
            one + "attr { key: 'Tcond' value { type: DT_FLOAT } }" +
                Calls("then_branch", "Double") + Calls("else_branch", "None")},
           kWrong, "its branches have 1 and 0 results");
  error_of({"f",
            "While",
            {},
            "attr { key: 'T' value { list { } } }" + Calls("cond", "None") + Calls("body", "None")},
           kWrong, "a While without loop variables");
}

TEST_F(FunctionsTest, AGraphWithoutSomeFunctionRunsItsOtherParts) {
  Input();
  Node({"f", "PartitionedCall", {"x"}, Types(kFloat1, kFloat1) + Calls("f", "Nobody")});
  Node({"minus", "Neg", {"x"}, Float()});
  EXPECT_EQ(*Run(X(3), "minus"), -3);
  EXPECT_THAT(Run(X(3), "f"), IsError(StatusCode::kInvalidArgument, "PartitionedCall"));
}

TEST_F(FunctionsTest, ExponentiallyManyNodesAreRefused) {
  Doubling();
  std::string inner = "Double";
  for (int i = 0; i < 40; ++i) {
    const std::string name = StrCat("F", i);
    const std::string attrs = Types(kFloat1, kFloat1) + Calls("f", inner);
    Function(
        name, {"x"}, {{"y", "b:output:0"}},
        {{"a", "PartitionedCall", {"x"}, attrs}, {"b", "PartitionedCall", {"a:output:0"}, attrs}});
    inner = name;
  }
  Input();
  Node({"f", "PartitionedCall", {"x"}, Types(kFloat1, kFloat1) + Calls("f", inner)});
  auto graph = GraphFromProto(def_, AllOps());
  ASSERT_OK(graph);
  EXPECT_THAT(ExpandFunctions(&*graph, 10000),
              IsError(StatusCode::kResourceExhausted, "the graph has more than 10000 nodes"));
}

TEST_F(FunctionsTest, NodesThatAreAddedInVainCountToo) {
  Doubling();
  const std::string attrs = Types(kFloat1, kFloat1);
  // A body of a hundred nodes, whose result is not there.
  std::vector<NodeText> nodes;
  for (int i = 0; i < 100; ++i) nodes.push_back({StrCat("n", i), "Neg", {"x"}, Float()});
  Function("Lost", {"x"}, {{"y", "nowhere:z:0"}}, nodes);
  Input();
  for (int i = 0; i < 90; ++i) {
    Node({StrCat("f", i), "PartitionedCall", {"x"}, attrs + Calls("f", "Lost")});
  }
  auto graph = GraphFromProto(def_, AllOps());
  ASSERT_OK(graph);
  Graph copy = graph->Clone();
  ASSERT_OK(ExpandFunctions(&copy, 10000));
  EXPECT_EQ(copy.num_nodes(), graph->num_nodes());
  EXPECT_EQ(copy.num_ids(), graph->num_ids());
  EXPECT_THAT(ExpandFunctions(&*graph, 8000),
              IsError(StatusCode::kResourceExhausted, "the graph has more than"));
}

}  // namespace
}  // namespace tenon::testing
