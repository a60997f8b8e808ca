// SPDX-License-Identifier: Apache-2.0
//
// What a step is given: outputs of this graph and of others, literals, values that there are not.
#include <gmock/gmock.h>

#include "core/proto/proto_io_graph.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "runtime/session/local_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsError;

constexpr auto kInvalid = StatusCode::kInvalidArgument;

/// A graph that multiplies what it is fed.
struct Multiplying {
  explicit Multiplying(float by) {
    const GraphBuilding building(graph);
    x = Placeholder(DType::kFloat, Shape());
    y = x * by;
  }
  Graph graph{AllOps()};
  Output x, y;
};

TEST(SessionArgumentsTest, AnOutputOfAnotherGraphIsNotTakenByItsName) {
  Multiplying ten(10), thousand(1000);
  ASSERT_EQ(ten.y.name(), thousand.y.name());
  const auto session = MakeLocalSession(thousand.graph);
  ASSERT_OK(session);
  EXPECT_EQ(*(*session)->Run<float>({{thousand.x, 2.0f}}, thousand.y), 2000);
  const auto other = [](std::string_view what, std::string_view name) {
    return IsError(kInvalid, StrCat(what, " '", name, "' is of another graph than the session's"));
  };
  EXPECT_THAT((*session)->Run<float>({{"Placeholder", 2.0f}}, ten.y), other("fetch", "Mul"));
  EXPECT_THAT((*session)->Run<float>({{ten.x, 2.0f}}, thousand.y), other("feed", "Placeholder"));
  EXPECT_THAT((*session)->Run({{thousand.x, 2.0f}}, {}, {ten.y.node}), other("target", "Mul"));
  EXPECT_THAT((*session)->Prepare({ten.x}, {"Mul"}), other("feed", "Placeholder"));
  EXPECT_THAT((*session)->Prepare<float>({thousand.x}, ten.y), other("fetch", "Mul"));
  // By name, whichever graph has it.
  EXPECT_EQ(*(*session)->Run<float>({{"Placeholder", 2.0f}}, "Mul"), 2000);
}

TEST(SessionArgumentsTest, ACopyOfAGraphIsAnotherGraph) {
  Multiplying ten(10);
  const Graph copy = ten.graph.Clone();
  EXPECT_NE(copy.id(), ten.graph.id());
  const auto session = MakeLocalSession(copy);
  ASSERT_OK(session);
  EXPECT_EQ(*(*session)->Run<float>({{"Placeholder", 2.0f}}, Output(copy.Find("Mul"))), 20);
  EXPECT_THAT((*session)->Run<float>({{"Placeholder", 2.0f}}, ten.y),
              IsError(kInvalid, "is of another graph"));
}

TEST(SessionArgumentsTest, AGraphThatMovesIsTheSame) {
  Multiplying ten(10);
  Graph moved = std::move(ten.graph);
  const auto session = MakeLocalSession(moved);
  ASSERT_OK(session);
  EXPECT_EQ(*(*session)->Run<float>({{ten.x, 2.0f}}, ten.y), 20);
}

TEST(SessionArgumentsTest, WhatIsBuiltAfterTheSessionIsForExtend) {
  Multiplying ten(10);
  const auto session = MakeLocalSession(ten.graph);
  ASSERT_OK(session);
  const GraphBuilding building(ten.graph);
  const Output more = ten.y + 1.0f;
  EXPECT_THAT((*session)->Run<float>({{ten.x, 2.0f}}, more),
              IsError(StatusCode::kFailedPrecondition,
                      "fetch 'AddV2' was added to the graph after the session was opened: "
                      "build it before, or give it by Session::Extend"));
  ASSERT_OK((*session)->Extend(ten.graph));
  EXPECT_EQ(*(*session)->Run<float>({{ten.x, 2.0f}}, more), 21);
}

TEST(SessionArgumentsTest, APreparedStepTakesLiterals) {
  Multiplying ten(10);
  const auto session = MakeLocalSession(ten.graph);
  ASSERT_OK(session);
  const auto step = (*session)->Prepare({ten.x}, {ten.y});
  ASSERT_OK(step);
  std::vector<Tensor> fetched;
  ASSERT_OK((*step)->Run({3}, &fetched));  // an integer, for a float
  EXPECT_EQ(fetched[0].scalar<float>(), 30);
  ASSERT_OK((*step)->Run({Tensor::Scalar(4.0f)}, &fetched));
  EXPECT_EQ(fetched[0].scalar<float>(), 40);
  EXPECT_THAT((*step)->Run({"four"}, &fetched), IsError(kInvalid, ""));
  EXPECT_THAT((*step)->Run({1.0f, 2.0f}, &fetched), IsError(kInvalid, ""));
  EXPECT_THAT((*step)->Run({}, &fetched), IsError(kInvalid, "found 0 feeds, wanted 1"));
  const Tensor wrong = Tensor::Of<float>({}, {1, 2});
  for (const Status& s :
       {(*step)->Run({wrong}, &fetched), (*step)->Run(std::vector<Tensor>{wrong}, &fetched)}) {
    EXPECT_THAT(s, IsError(kInvalid, "found 2 values for a tensor of shape [], wanted 1"));
    EXPECT_THAT(s, IsError(kInvalid, "feed 'Placeholder'"));
  }
}

TEST(SessionArgumentsTest, ATensorWithAnotherNumberOfValuesIsAMistakeWithItsPlace) {
  const int line = __LINE__ + 1;
  const Tensor wrong = Tensor::Of<float>({2, 2}, {1, 2, 3});
  EXPECT_FALSE(wrong.valid());
  const std::string place = StrCat("session_arguments_test.cc:", line);
  const auto mistake = IsError(
      kInvalid, StrCat(place, ": found 3 values for a tensor of shape ", "[2,2], wanted 4"));
  EXPECT_THAT(wrong.mistake(), mistake);
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  Const(wrong);
  EXPECT_THAT(graph.error(), mistake);
  Graph other(AllOps());
  {
    const GraphBuilding into(other);
    Square(wrong);
    EXPECT_THAT(other.error(), mistake);
  }
  Multiplying ten(10);
  const auto session = MakeLocalSession(ten.graph);
  ASSERT_OK(session);
  EXPECT_THAT((*session)->Run<float>({{ten.x, wrong}}, ten.y), mistake);
  EXPECT_THAT(Tensor().mistake(), IsError(kInvalid, "the tensor has no value"));
}

TEST(SessionArgumentsTest, AConstantForWhichThereIsNoMemoryIsAMistake) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const int line = __LINE__ + 1;
  EXPECT_FALSE(Zeros({10'000'000, 10'000'000}).exists());
  EXPECT_THAT(graph.error(),
              IsError(StatusCode::kResourceExhausted, StrCat("session_arguments_test.cc:", line)));
  EXPECT_THAT(graph.error(), IsError(StatusCode::kResourceExhausted,
                                     "float[10000000,10000000]; Fill makes it in the step"));
}

TEST(SessionArgumentsTest, AnErrorOfAStepNamesTheLineThatBuiltTheNode) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output x = Placeholder(DType::kInt32, Shape());
  const int line = __LINE__ + 1;
  const Output y = Div(1, x);
  const auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  const auto wanted = IsError(kInvalid, StrCat("session_arguments_test.cc:", line, ": node 'Div'"));
  EXPECT_THAT((*session)->Run<int32_t>({{x, 0}}, y), wanted);
  const auto step = (*session)->Prepare<int32_t>({x}, y);
  ASSERT_OK(step);
  EXPECT_THAT((*step)(0), wanted);
}

TEST(SessionArgumentsTest, AFetchOfABranchThatWasNotTakenIsCalledByItsName) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output x = Placeholder(DType::kBool, Shape());
  Output inside;
  Cond(
      x, [&] { return inside = Const(1.0f) + 1.0f; }, [] { return Const(2.0f); });
  const auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  EXPECT_THAT((*session)->Run<float>({{x, false}}, inside),
              IsError(kInvalid, StrCat("Retval[0] does not have value: '", inside.name(),
                                       "' is on a branch that was not taken")));
}

TEST(SessionArgumentsTest, AFetchOfALoopsBodyIsToldThatResultsAreFetched) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  Output inside;
  const std::vector<Output> end = WhileLoop(
      {0}, [](const auto& v) { return v[0] < 3; },
      [&](const auto& v) { return std::vector<Output>{inside = v[0] + 1}; });
  const auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  EXPECT_THAT(
      (*session)->Run<int32_t>({}, inside),
      IsError(kInvalid, StrCat("Retval[0] does not have value: '", inside.name(),
                               "' is within a while loop, of which the results are fetched")));
  EXPECT_EQ(*(*session)->Run<int32_t>({}, end[0]), 3);
}

TEST(SessionArgumentsTest, ShapesThatContradictEachOtherFailOnlyTheStepsThatNeedThem) {
  GraphDef def;
  {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    const Output a = Placeholder(DType::kFloat, Shape{2}, {.name = "a"});
    const Output sum = Add(a, Placeholder(DType::kFloat, Shape{2}, {.name = "b"}), {.name = "sum"});
    Neg(sum, {.name = "neg"});
    Neg(a, {.name = "other"});
    ASSERT_OK(GraphToProto(graph, &def));
  }
  for (NodeDef& node : *def.mutable_node()) {
    if (node.name() != "b") continue;
    (*node.mutable_attr())["shape"].mutable_shape()->mutable_dim(0)->set_size(3);
  }
  const auto graph = GraphFromProto(def, AllOps());
  ASSERT_OK(graph);
  const auto session = MakeLocalSession(*graph);
  ASSERT_OK(session);
  const Tensor two = Tensor::Vector<float>({1, 2});
  const Tensor three = Tensor::Vector<float>({1, 2, 3});
  const Status apart = (*session)->Run({{"a", two}, {"b", three}}, {"neg"}).status();
  EXPECT_THAT(apart, IsError(kInvalid, "node 'sum' (Add)"));
  EXPECT_THAT(apart, IsError(kInvalid, "Incompatible shapes: [2] vs. [3]"));
  EXPECT_OK((*session)->Run({{"a", two}}, {"other"}));
  // Whoever feeds the sum does not need it.
  EXPECT_OK((*session)->Run({{"sum", two}}, {"neg"}));
}

TEST(SessionArgumentsTest, ShapesThatContradictEachOtherOnABranchMatterWhenItIsTaken) {
  GraphDef def;
  {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    const Output a = Placeholder(DType::kFloat, Shape{2}, {.name = "a"});
    const Output b = Placeholder(DType::kFloat, Shape{2}, {.name = "b"});
    const Output is_taken = Placeholder(DType::kBool, Shape{}, {.name = "is_taken"});
    Neg(Cond(
            is_taken, [&] { return a + b; }, [&] { return a * 2.0f; }),
        {.name = "result"});
    ASSERT_OK(GraphToProto(graph, &def));
  }
  for (NodeDef& node : *def.mutable_node()) {
    if (node.name() != "b") continue;
    (*node.mutable_attr())["shape"].mutable_shape()->mutable_dim(0)->set_size(3);
  }
  const auto graph = GraphFromProto(def, AllOps());
  ASSERT_OK(graph);
  const auto session = MakeLocalSession(*graph);
  ASSERT_OK(session);
  const auto run = [&](bool is_taken) {
    return (*session)->Run({{"a", Tensor::Vector<float>({1, 2})},
                            {"b", Tensor::Vector<float>({1, 2, 3})},
                            {"is_taken", Tensor::Scalar(is_taken)}},
                           {"result"});
  };
  const auto result = run(false);
  ASSERT_OK(result.status());
  EXPECT_EQ((*result)[0].ToString(), "float[2] -2 -4");
  EXPECT_THAT(run(true).status(), IsError(kInvalid, "Incompatible shapes: [2] vs. [3]"));
}

TEST(SessionArgumentsTest, AnAttributeThatIsWrongWhateverTheInputsAreFailsTheStep) {
  GraphDef def;
  {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    Neg(Const(1.0f, {.name = "c"}), {.name = "neg"});
    Neg(Const(2.0f, {.name = "d"}), {.name = "other"});
    ASSERT_OK(GraphToProto(graph, &def));
  }
  for (NodeDef& node : *def.mutable_node()) {
    if (node.name() != "c") continue;
    // Whoever reads the value believes the dtype.
    TensorProto* const value = (*node.mutable_attr())["value"].mutable_tensor();
    value->Clear();
    value->set_dtype(DT_STRING);
    value->add_string_val("text");
  }
  const auto graph = GraphFromProto(def, AllOps());
  ASSERT_OK(graph);
  EXPECT_THAT(graph->NodeError(*graph->Find("c")), IsError(kInvalid, "node 'c' (Const)"));
  const auto session = MakeLocalSession(*graph);
  ASSERT_OK(session);
  EXPECT_THAT((*session)->Run({}, {"neg"}).status(), IsError(kInvalid, "node 'c' (Const)"));
  EXPECT_EQ((*(*session)->Run({}, {"other"}))[0].scalar<float>(), -2);
}

TEST(SessionArgumentsTest, MistakesSayWhatWasMeant) {
  {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    const Output w = NodeBuilder("VariableV2")
                         .Attr("shape", PartialShape(Shape()))
                         .Attr("dtype", DType::kFloat)
                         .Output();
    Assign(Identity(w), 2.0f);
    EXPECT_THAT(graph.error(), IsError(kInvalid, "of a Variable w the reference is w.ref()"));
  }
  {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    Cond(
        Const(1.0f), [] { return Const(1.0f); }, [] { return Const(2.0f); });
    EXPECT_THAT(
        graph.error(),
        IsError(kInvalid, "the predicate of a Cond must be a bool scalar, 'Const' is float"));
  }
  {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    WhileLoop(
        {Const(1.0f)}, [](const std::vector<Output>& v) { return v[0] < 10.0f; },
        [](const std::vector<Output>& v) {
          return std::vector<Output>{Cast(v[0], DType::kDouble)};
        });
    const std::string message(Message(graph.error()));
    EXPECT_THAT(message, HasSubstr("is float[] before the body and double[] after it"));
    EXPECT_THAT(message, ::testing::Not(HasSubstr("shape_invariants")));
  }
}

}  // namespace
}  // namespace tenon
