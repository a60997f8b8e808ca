// SPDX-License-Identifier: Apache-2.0
#include "core/base/sanitizers.h"
#include "runtime/functions/expansion.h"
#include "runtime/functions/functions_needed.h"
#include "tests/runtime/function_graphs.h"
#include "tests/testing/cpu_time.h"

// Functions that no program has, and a client may send.

namespace tenon::testing {
namespace {

constexpr int kMany = kSanitized ? 20000 : 200000;

std::shared_ptr<FunctionDefinition> Define(const std::string& name) {
  auto function = std::make_shared<FunctionDefinition>();
  function->signature.schema.name = name;
  function->signature.shape = UnknownShape;
  return function;
}

TEST(LargeFunctionsTest, AChainOfFunctionsIsNeededToItsEnd) {
  auto library = std::make_shared<FunctionLibrary>();
  for (int i = 0; i < kMany; ++i) {
    auto function = Define(StrCat("F", i));
    const FunctionName next{StrCat("F", i + 1), {}};
    function->nodes.push_back({"next", "PartitionedCall", "", {}, {{"f", next}}, {}});
    ASSERT_OK(library->Add(std::move(function)));
  }
  Graph graph(AllOps());
  graph.set_functions(library);
  ASSERT_OK(graph.AddNode("call", "F1", {}));
  EXPECT_EQ(FunctionsNeeded(graph)->All().size(), kMany - 1);
}

TEST(LargeFunctionsTest, CompanionsAreFoundInTimeThatIsLinear) {
  const CpuTime time;
  auto function = Define("F");
  const std::vector<std::string> companions = {StrCat("loc:@n", kMany - 1)};
  for (int i = 0; i < kMany; ++i) {
    function->nodes.push_back({StrCat("n", i), "NoOp", "", {}, {{"_class", companions}}, {}});
  }
  auto library = std::make_shared<FunctionLibrary>();
  ASSERT_OK(library->Add(std::move(function)));
  Graph graph(AllOps());
  graph.set_functions(library);
  ASSERT_OK(graph.AddNode("call", "F", {}));
  ASSERT_OK(ExpandFunctions(&graph, 2 * kMany));
  const Node* const first = graph.Find("call/n0");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->attrs().Get<std::vector<std::string>>("_class")->front(),
            StrCat("loc:@call/n", kMany - 1));
  EXPECT_LT(time.seconds(), kLinearSeconds);
}

TEST_F(FunctionsTest, ACaseMayHaveManyBranches) {
  Doubling();
  Function("Same", {"x"}, {{"y", "x"}}, {});
  std::string branches;
  constexpr int kBranches = kMany / 10;
  for (int i = 0; i < kBranches; ++i) {
    StrAppend(&branches, "func { name: '", i == kBranches - 2 ? "Double" : "Same", "' } ");
  }
  Input();
  Input("i", "DT_INT32");
  Node({"f",
        "Case",
        {"i", "x"},
        Types(kFloat1, kFloat1) + "attr { key: 'branches' value { list { " + branches + "} } }"});
  const auto run = [&](int i) {
    return *Run({{"i", Tensor::Scalar(i)}, {"x", Tensor::Scalar(3.0f)}}, "f");
  };
  EXPECT_EQ(run(kBranches - 3), 3);
  EXPECT_EQ(run(kBranches - 2), 6);
  EXPECT_EQ(run(kBranches), 3);
}

TEST_F(FunctionsTest, ALoopWithinItselfHasNoGradient) {
  const std::string enters = Float() + "attr { key: 'frame_name' value { s: 'loop' } }";
  Function("Enters", {"x"}, {{"y", "b:output:0"}},
           {{"a", "Enter", {"x"}, enters}, {"b", "Enter", {"a:output:0"}, enters}});
  Input();
  Node({"g", "SymbolicGradient", {"x", "x"}, Types(kFloat2, kFloat1) + Calls("f", "Enters")});
  EXPECT_THAT(Run(X(3), "g"), IsError(kInvalid,
                                      "gradients need while loops within at most 64 "
                                      "others, and none within itself; found loop"));
}

TEST_F(FunctionsTest, GradientsCountAmongTheNodes) {
  // Each value of a branch goes through all branches that it is in.
  const std::string one = Types(kFloat1, kFloat1);
  Function("Squares", {"x"}, {{"y", "m:z:0"}}, {{"m", "Mul", {"x", "x"}, Float()}});
  std::string branches;
  for (int i = 0; i < 100; ++i) StrAppend(&branches, "func { name: 'Squares' } ");
  const std::string casts =
      "attr { key: 'SrcT' value { type: DT_FLOAT } } attr { key: 'DstT' value { type: DT_INT32 } }";
  Function("Body", {"x"}, {{"y", "c:output:0"}},
           {{"i", "Cast", {"x"}, casts},
            {"c",
             "Case",
             {"i:y:0", "x"},
             one + "attr { key: 'branches' value { list { " + branches + "} } }"}});
  AddTo(
      "signature { name: 'Goes' input_arg { name: 'x' type: DT_FLOAT } "
      "output_arg { name: 'y' type: DT_BOOL } } ret { key: 'y' value: 'less:z:0' } "
      "node_def { name: 'less' op: 'Less' input: 'x' input: 'x' " +
          Float() + " }",
      def_.mutable_library()->add_function());
  Function("Loop", {"x"}, {{"y", "w:output:0"}},
           {{"w",
             "While",
             {"x"},
             "attr { key: 'T' value { list { type: DT_FLOAT } } }" + Calls("cond", "Goes") +
                 Calls("body", "Body")}});
  Input();
  Node({"g", "SymbolicGradient", {"x", "x"}, Types(kFloat2, kFloat1) + Calls("f", "Loop")});
  auto graph = GraphFromProto(def_, AllOps());
  ASSERT_OK(graph);
  Graph copy = graph->Clone();
  ASSERT_OK(ExpandFunctions(&copy, 1 << 20));
  EXPECT_OK(copy.NodeError(*copy.Find("g")));
  EXPECT_GT(copy.num_nodes(), 50000);
  EXPECT_THAT(ExpandFunctions(&*graph, 20000),
              IsError(StatusCode::kResourceExhausted,
                      "with the gradients of its loops the graph may have more than 20000 nodes"));
}

TEST_F(FunctionsTest, ResultsOfFunctionsAreNoReferences) {
  const std::string reference = "type: DT_FLOAT is_ref: true";
  const std::vector<NodeText> body = {{"c", "Const", {}, FloatConst(5)}};
  Function("One", {}, {{"y", "c:output:0"}}, body, "", reference);
  Function("Two", {}, {{"y", "c:output:0"}, {"z", "c:output:0"}}, body, "", reference);
  Input();
  for (const std::string function : {"One", "Two"}) {
    Node({function, function, {}});
    Node({"value" + function, function, {}});
    Node({"add" + function, "AssignAdd", {function, "x"}, Float()});
    EXPECT_EQ(*Run(X(3), "value" + function), 5);
    EXPECT_THAT(Run(X(3), "add" + function),
                IsError(kInvalid, StrCat("results of functions are values, but node 'add", function,
                                         "' (AssignAdd) wants output 0 as a reference")));
    session_ = nullptr;
  }
}

TEST_F(FunctionsTest, ABodyWhoseNamesAreAllTakenIsRefused) {
  Doubling();
  Input();
  Node({"f", "PartitionedCall", {"x"}, Types(kFloat1, kFloat1) + Calls("f", "Double")});
  Node({"f/sum", "Neg", {"x"}, Float()});
  for (int i = 1; i < 100; ++i) Node({StrCat("f_", i, "/sum"), "Neg", {"x"}, Float()});
  EXPECT_THAT(Run(X(3), "f"),
              IsError(kInvalid, "names of its nodes are taken under 'f/', and up to 'f_99/'"));
}

}  // namespace
}  // namespace tenon::testing
