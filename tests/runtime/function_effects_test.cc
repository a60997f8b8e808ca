// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/runtime/function_graphs.h"

namespace tenon::testing {
namespace {

/// A variable `v` and a function that adds its argument to it.
class StatefulFunctionsTest : public FunctionsTest {
 protected:
  void SetUp() override {
    Node({"v",
          "VarHandleOp",
          {},
          "attr { key: 'dtype' value { type: DT_FLOAT } }"
          "attr { key: 'shape' value { shape {} } }"});
    Node({"zero", "Const", {}, FloatConst(0)});
    const std::string dtype = "attr { key: 'dtype' value { type: DT_FLOAT } }";
    Node({"init", "AssignVariableOp", {"v", "zero"}, dtype});
    Node({"read", "ReadVariableOp", {"v"}, dtype});
    AddTo(
        "signature { name: 'Count' input_arg { name: 'v' type: DT_RESOURCE } is_stateful: true "
        "input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT } } "
        "node_def { name: 'add' op: 'AssignAddVariableOp' input: 'v' input: 'x' " +
            dtype +
            " } "
            "ret { key: 'y' value: 'x' } control_ret { key: 'add' value: 'add' }",
        def_.mutable_library()->add_function());
    Input();
  }
  void Init() {
    ASSERT_OK(Open());
    ASSERT_OK(session_->Run({}, {}, {"init"}));
  }
  std::string ResourceAndFloat() { return Types("type: DT_RESOURCE type: DT_FLOAT", kFloat1); }
};

TEST_F(StatefulFunctionsTest, EffectsHappenThoughNoResultNeedsThem) {
  Node({"f", "StatefulPartitionedCall", {"v", "x"}, ResourceAndFloat() + Calls("f", "Count")});
  Init();
  EXPECT_EQ(*Run(X(2), "f"), 2);
  ASSERT_OK(session_->Run(X(5), {}, {"f"}));
  EXPECT_EQ(*Run({}, "read"), 7);
}

TEST_F(StatefulFunctionsTest, OnlyTheBranchThatIsTakenHasEffects) {
  const std::string resource =
      "input_arg { name: 'v' type: DT_RESOURCE } "
      "input_arg { name: 'x' type: DT_FLOAT } ";
  AddTo("signature { name: 'Nothing' " + resource +
            "output_arg { name: 'y' type: DT_FLOAT } } "
            "node_def { name: 'one' op: 'Const' " +
            FloatConst(-1) +
            " } "
            "ret { key: 'y' value: 'one:output:0' }",
        def_.mutable_library()->add_function());
  Input("p", "DT_BOOL");
  Node({"f",
        "If",
        {"p", "v", "x"},
        ResourceAndFloat() + "attr { key: 'Tcond' value { type: DT_BOOL } }" +
            Calls("then_branch", "Count") + Calls("else_branch", "Nothing")});
  Init();
  const auto run = [&](bool p) {
    return *Run({{"p", Tensor::Scalar(p)}, {"x", Tensor::Scalar(4.0f)}}, "f");
  };
  EXPECT_EQ(run(true), 4);
  EXPECT_EQ(run(false), -1);
  EXPECT_EQ(run(true), 4);
  EXPECT_EQ(*Run({}, "read"), 8);
}

/// Calls of functions that do not say which of their nodes must run.
class SilentFunctionsTest : public StatefulFunctionsTest {
 protected:
  static constexpr char kResource[] =
      "input_arg { name: 'v' type: DT_RESOURCE } input_arg { name: 'x' type: DT_FLOAT } "
      "output_arg { name: 'y' type: DT_FLOAT } ";
  const std::string adds_ =
      "op: 'AssignAddVariableOp' attr { key: 'dtype' value { type: DT_FLOAT } } ";

  void SetUp() override {
    StatefulFunctionsTest::SetUp();
    Add("Silent", "node_def { name: 'add' input: 'v' input: 'x' " + adds_ + "}", "x");
  }
  void Add(const std::string& name, const std::string& nodes, const std::string& result) {
    AddTo(StrCat("signature { name: '", name, "' is_stateful: true ", kResource, "} ", nodes,
                 " ret { key: 'y' value: '", result, "' }"),
          def_.mutable_library()->add_function());
  }
  /// What a step that fetches `f` and then reads the variable leaves there.
  float LeftBy(const NodeText& call, float result) {
    def_.mutable_node()->RemoveLast();
    session_ = nullptr;
    Node(call);
    Init();
    EXPECT_EQ(*Run(X(2), "f"), result);
    return *Run({}, "read");
  }
};

TEST_F(SilentFunctionsTest, TheirEffectsDependOnTheCall) {
  Node({"f", "NoOp", {}});
  EXPECT_EQ(LeftBy({"f", "Silent", {"v", "x"}}, 2), 2);
  for (const char* op : {"PartitionedCall", "StatefulPartitionedCall"}) {
    EXPECT_EQ(LeftBy({"f", op, {"v", "x"}, ResourceAndFloat() + Calls("f", "Silent")}, 2), 0) << op;
  }
  const std::string branches = ResourceAndFloat() +
                               "attr { key: 'Tcond' value { type: DT_FLOAT } }" +
                               Calls("then_branch", "Silent") + Calls("else_branch", "Silent");
  const std::string lowered = "attr { key: '_lower_using_switch_merge' value { b: true } }";
  for (const char* op : {"If", "StatelessIf"}) {
    EXPECT_EQ(LeftBy({"f", op, {"x", "v", "x"}, branches}, 2), 2) << op;
    EXPECT_EQ(LeftBy({"f", op, {"x", "v", "x"}, branches + lowered}, 2), 0) << op;
  }
}

TEST_F(SilentFunctionsTest, EffectsOnABranchOfTheBodyHappenWhereItIsTaken) {
  // The variable is added to where x is over 3, which the result does not need.
  const std::string type = "attr { key: 'T' value { type: DT_FLOAT } } ";
  Add("Branch",
      "node_def { name: 'three' op: 'Const' " + FloatConst(3) +
          " } node_def { name: 'over' op: 'Greater' input: 'x' input: 'three:output:0' " + type +
          "} node_def { name: 's' op: 'Switch' input: 'x' input: 'over:z:0' " + type +
          "} node_def { name: 'add' input: 'v' input: 's:output_true:0' " + adds_ + "}",
      "x");
  Node({"f", "Branch", {"v", "x"}});
  Node({"after", "ReadVariableOp", {"v", "^f"}, "attr { key: 'dtype' value { type: DT_FLOAT } }"});
  Init();
  EXPECT_EQ(*Run(X(2), "f"), 2);
  EXPECT_EQ(*Run({}, "read"), 0);
  EXPECT_EQ(*Run(X(5), "after"), 5);
}

TEST_F(SilentFunctionsTest, EffectsInALoopOfTheBodyAreOverWhenTheCallIs) {
  // Doubled until it is over 100; each value, and 1 for each turn with x over 50, is added.
  const std::string type = "attr { key: 'T' value { type: DT_FLOAT } } ";
  const std::string frame =
      "attr { key: 'frame_name' value { s: 'loop' } } attr { key: 'is_constant' value { b: ";
  Add("Loop",
      "node_def { name: 'enter' op: 'Enter' input: 'x' " + type + frame + "false } } } " +
          "node_def { name: 'var' op: 'Enter' input: 'v' attr { key: 'T' value { type: DT_RESOURCE "
          "} } " +
          frame + "true } } } " +
          "node_def { name: 'merge' op: 'Merge' input: 'enter:output:0' input: 'next:output:0' " +
          type + "attr { key: 'N' value { i: 2 } } } " +
          "node_def { name: 'limit' op: 'Const' input: '^merge' " + FloatConst(100) + " } " +
          "node_def { name: 'less' op: 'Less' input: 'merge:output:0' input: 'limit:output:0' " +
          type + "} node_def { name: 'goes_on' op: 'LoopCond' input: 'less:z:0' } " +
          "node_def { name: 's' op: 'Switch' input: 'merge:output:0' input: 'goes_on:output:0' " +
          type +
          "} node_def { name: 'twice' op: 'AddV2' input: 's:output_true:0' input: "
          "'s:output_true:0' " +
          type + "} node_def { name: 'next' op: 'NextIteration' input: 'twice:z:0' " + type +
          "} node_def { name: 'exit' op: 'Exit' input: 's:output_false:0' " + type +
          "} node_def { name: 'add' input: 'var:output:0' input: 's:output_true:0' " + adds_ +
          "} node_def { name: 'half' op: 'Const' input: '^merge' " + FloatConst(50) + " } " +
          "node_def { name: 'over' op: 'Greater' input: 's:output_true:0' input: 'half:output:0' " +
          type + "} node_def { name: 'one' op: 'Const' input: '^merge' " + FloatConst(1) + " } " +
          "node_def { name: 'b' op: 'Switch' input: 'one:output:0' input: 'over:z:0' " + type +
          "} node_def { name: 'add_one' input: 'var:output:0' input: 'b:output_true:0' " + adds_ +
          "}",
      "x");
  Node({"f", "Loop", {"v", "x"}});
  Node({"after", "ReadVariableOp", {"v", "^f"}, "attr { key: 'dtype' value { type: DT_FLOAT } }"});
  Init();
  // 3 + 6 + 12 + 24 + 48 + 96, and 1 for the 96.
  EXPECT_EQ(*Run(X(3), "after"), 190);
  EXPECT_EQ(*Run(X(200), "after"), 190);
}

TEST_F(SilentFunctionsTest, EffectsInTheConditionOfALoopAreOverWhenTheCallIs) {
  // Doubled until it is over 100; 1 is added each time that this is asked, some nodes later.
  const std::string type = "attr { key: 'T' value { type: DT_FLOAT } } ";
  const std::string frame =
      "attr { key: 'frame_name' value { s: 'loop' } } attr { key: 'is_constant' value { b: ";
  std::string late;
  for (int i = 0; i < 300; ++i) {
    StrAppend(&late, "node_def { name: 'late", i, "' op: 'Neg' input: '",
              i == 0 ? "one:output:0" : StrCat("late", i - 1, ":y:0"), "' ", type, "} ");
  }
  Add("Loop",
      "node_def { name: 'enter' op: 'Enter' input: 'x' " + type + frame + "false } } } " +
          "node_def { name: 'var' op: 'Enter' input: 'v' attr { key: 'T' value { type: DT_RESOURCE "
          "} } " +
          frame + "true } } } " +
          "node_def { name: 'merge' op: 'Merge' input: 'enter:output:0' input: 'next:output:0' " +
          type + "attr { key: 'N' value { i: 2 } } } " +
          "node_def { name: 'limit' op: 'Const' input: '^merge' " + FloatConst(100) + " } " +
          "node_def { name: 'less' op: 'Less' input: 'merge:output:0' input: 'limit:output:0' " +
          type + "} node_def { name: 'goes_on' op: 'LoopCond' input: 'less:z:0' } " +
          "node_def { name: 's' op: 'Switch' input: 'merge:output:0' input: 'goes_on:output:0' " +
          type +
          "} node_def { name: 'twice' op: 'AddV2' input: 's:output_true:0' input: "
          "'s:output_true:0' " +
          type + "} node_def { name: 'next' op: 'NextIteration' input: 'twice:z:0' " + type +
          "} node_def { name: 'exit' op: 'Exit' input: 's:output_false:0' " + type +
          "} node_def { name: 'one' op: 'Const' input: '^merge' " + FloatConst(1) + " } " + late +
          "node_def { name: 'add' input: 'var:output:0' input: 'late299:y:0' " + adds_ + "}",
      "exit:output:0");
  Node({"f", "Loop", {"v", "x"}});
  Node({"after", "ReadVariableOp", {"v", "^f"}, "attr { key: 'dtype' value { type: DT_FLOAT } }"});
  Init();
  // 3, 6, 12, 24, 48, 96 and 192.
  EXPECT_EQ(*Run(X(3), "after"), 7);
  EXPECT_EQ(*Run(X(200), "after"), 8);
}

}  // namespace
}  // namespace tenon::testing
