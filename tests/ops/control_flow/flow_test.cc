// SPDX-License-Identifier: Apache-2.0
// Branches and loops as C++ programs build them, their gradients, and gradients of programs' own.
#include "ops/control_flow/flow.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/state/state_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Values = std::vector<Output>;

Output Scalar(const char* name) { return Placeholder(DType::kDouble, Shape(), {.name = name}); }
Tensor Of(double x) { return Tensor::Scalar(x); }

TEST(FlowTest, ACondRunsTheBranchThatIsTaken) {
  GraphSession s;
  const Output x = Scalar("x");
  const Output y = Cond(
      x < 1, [&] { return x * 10; }, [&] { return Sqrt(x); });
  const Output dx = Gradients(y, {x})[0];
  auto small = s.Run({y, dx}, {}, {{"x", Of(0.5)}});
  ASSERT_OK(small.status());
  EXPECT_EQ((*small)[0].scalar<double>(), 5);
  EXPECT_EQ((*small)[1].scalar<double>(), 10);
  auto large = s.Run({y, dx}, {}, {{"x", Of(4)}});
  ASSERT_OK(large.status());
  EXPECT_EQ((*large)[0].scalar<double>(), 2);
  EXPECT_EQ((*large)[1].scalar<double>(), 0.25);
}

TEST(FlowTest, ABranchChangesAVariableOnlyWhenTaken) {
  GraphSession s;
  const Output v = VariableV2(Shape(), DType::kFloat, {.name = "v"});
  const Output set = Assign(v, 1.0f);
  const Output which = Placeholder(DType::kBool, Shape(), {.name = "which"});
  const Output done = Cond(
      which, [&] { return Output(NodeBuilder("AssignAdd").Input(v).Input(2.0f).Output()); },
      [&] { return Identity(v); });
  const Output value = Identity(v);
  ASSERT_OK(s.Run({}, {set}).status());
  ASSERT_OK(s.Run({}, {done}, {{"which", Tensor::Scalar(false)}}).status());
  EXPECT_EQ(s.Value(value).scalar<float>(), 1);
  ASSERT_OK(s.Run({}, {done}, {{"which", Tensor::Scalar(true)}}).status());
  EXPECT_EQ(s.Value(value).scalar<float>(), 3);
}

TEST(FlowTest, ABranchOfANodeWithoutOutputsGivesATruthValueAfterIt) {
  GraphSession s;
  const Output v = VariableV2(Shape(), DType::kFloat, {.name = "v"});
  const Output set = Assign(v, 1.0f);
  const Output which = Placeholder(DType::kBool, Shape(), {.name = "which"});
  const auto group = [&](float by) -> Values {
    const ControlDependencies after({AssignAdd(v, by)});
    Output node;
    node.node = NoOp();
    return {node};
  };
  const Output done = Cond(
      which, [&] { return group(4); }, [&] { return group(2); })[0];
  const Output value = Identity(v);
  ASSERT_OK(s.Run({}, {set}).status());
  auto ran = s.Run({done}, {}, {{"which", Tensor::Scalar(false)}});
  ASSERT_OK(ran.status());
  EXPECT_EQ(s.Value(value).scalar<float>(), 3);
}

TEST(FlowTest, TheFirstTrueCaseIsTaken) {
  GraphSession s;
  const Output x = Scalar("x");
  const auto constant = [](double v) {
    return [v] { return Const(v, {.dtype = DType::kDouble}); };
  };
  const Output y = Case({{x < 1, constant(1)}, {x < 2, constant(2)}}, constant(3));
  for (const double at : {0.5, 1.5, 2.5}) {
    auto value = s.Run({y}, {}, {{"x", Of(at)}});
    ASSERT_OK(value.status());
    EXPECT_EQ((*value)[0].scalar<double>(), at + 0.5);
  }
}

TEST(FlowTest, ALoopUsesWhatIsOutsideOfIt) {
  GraphSession s;
  const Output x = Scalar("x");
  const Output n = Placeholder(DType::kInt32, Shape(), {.name = "n"});
  const Values end = tenon::WhileLoop(
      {0, Const(1.0, {.dtype = DType::kDouble})}, [&](const Values& v) { return v[0] < n; },
      [&](const Values& v) -> Values {
        return {v[0] + 1, v[1] * x};
      });
  const Output dx = Gradients(end[1], {x})[0];
  const Output ddx = Gradients(Square(x) * x, {x})[0];
  for (const int times : {0, 1, 2, 7}) {
    auto values =
        s.Run({end[1], dx, ddx}, {}, {{"x", Of(1.5)}, {"n", Tensor::Scalar<int32_t>(times)}});
    ASSERT_OK(values.status());
    EXPECT_DOUBLE_EQ((*values)[0].scalar<double>(), std::pow(1.5, times));
    EXPECT_DOUBLE_EQ((*values)[1].scalar<double>(), times * std::pow(1.5, times - 1));
  }
}

TEST(FlowTest, ConstantsOfABranchAreDeadWithIt) {
  GraphSession s;
  const Output which = Placeholder(DType::kBool, Shape(), {.name = "which"});
  const Output v = VariableV2(Shape(), DType::kFloat, {.name = "v"});
  const Output set = Assign(v, 1.0f);
  // In the branches nothing but constants go into these ops, one of which has an effect.
  const Output y = Cond(
      which,
      [&] {
        return Sum(Fill({3}, 2.0f) + Const({1.0f, 2.0f, 3.0f}), {0});
      },
      [&] { return AssignAdd(v, 4.0f) + Const(0.5f); });
  ASSERT_OK(s.Run({}, {set}).status());
  for (int i = 0; i < 2; ++i) {
    auto yes = s.Run({y}, {}, {{"which", Tensor::Scalar(true)}});
    ASSERT_OK(yes.status());
    EXPECT_EQ((*yes)[0].scalar<float>(), 12);
    EXPECT_EQ(s.Value(Identity(v)).scalar<float>(), static_cast<float>(1 + 4 * i));
    auto no = s.Run({y}, {}, {{"which", Tensor::Scalar(false)}});
    ASSERT_OK(no.status());
    EXPECT_EQ((*no)[0].scalar<float>(), static_cast<float>(5.5 + 4 * i));
  }
}

TEST(FlowTest, StepsOfLoopsFollowEachOtherAndFailedOnes) {
  GraphSession s;
  const Output n = Placeholder(DType::kInt32, Shape(), {.name = "n"});
  const Output m = Placeholder(DType::kInt32, Shape(), {.name = "m"});
  const Output table = Const({1, 10, 100, 1000});
  // The sum of table[j] for j < m, n times; an m of 5 fails in an inner iteration.
  const Values end = tenon::WhileLoop(
      {0, 0}, [&](const Values& v) { return v[0] < n; },
      [&](const Values& v) -> Values {
        const Output inner = tenon::WhileLoop(
            {0, v[1]}, [&](const Values& u) { return u[0] < m; },
            [&](const Values& u) -> Values {
              const Output added = Cond(
                  Equal(u[0] % 2, 0), [&] { return u[1] + Gather(table, u[0]); },
                  [&] { return Gather(table, u[0]) + u[1]; });
              return {u[0] + 1, added};
            })[1];
        return {v[0] + 1, inner};
      });
  constexpr int kSums[] = {0, 1, 11, 111, 1111};
  const auto run = [&](int times, int size) {
    return s.Run({end[1]}, {},
                 {{"n", Tensor::Scalar<int32_t>(times)}, {"m", Tensor::Scalar<int32_t>(size)}});
  };
  for (const int times : {3, 0, 100, 1, 40}) {
    for (const int size : {2, 4, 5, 0, 3}) {
      const auto sum = run(times, size);
      if (size == 5 && times > 0) {
        EXPECT_THAT(sum.status(), IsError(StatusCode::kInvalidArgument, "[0, 4)"));
        continue;
      }
      ASSERT_OK(sum.status());
      if (times > 0) EXPECT_EQ((*sum)[0].scalar<int32_t>(), times * kSums[size]);
    }
  }
}

TEST(FlowTest, WhatEntersALoopCanBeFetchedAsInTensorFlow) {
  GraphSession s;
  const Output x = Scalar("x");
  const Output twice = x * 2;
  const Values end = tenon::WhileLoop(
      {0, twice}, [](const Values& v) { return v[0] < 3; },
      [&](const Values& v) -> Values {
        const Output inner = tenon::WhileLoop(
            {0, v[1]}, [](const Values& u) { return u[0] < 2; },
            [&](const Values& u) -> Values {
              return {u[0] + 1, u[1] + x};
            })[1];
        return {v[0] + 1, inner * twice};
      });
  int outermost = 0, refused = 0;
  for (Node* node : s.graph.nodes()) {
    if (!node->is_enter() || node->output_type(0) != DType::kDouble) continue;
    const auto fetched = s.Run({Output{node, 0}, end[1]}, {}, {{"x", Of(5)}});
    if (!fetched.ok()) {  // of the inner loop, which is entered three times
      EXPECT_THAT(fetched.status().message(), HasSubstr("within a while loop"));
      ++refused;
      continue;
    }
    ++outermost;
    const double value = (*fetched)[0].scalar<double>();
    EXPECT_TRUE(value == 5 || value == 10) << value;
    EXPECT_EQ((*fetched)[1].scalar<double>(), ((20 * 10.0 + 10) * 10 + 10) * 10);
  }
  EXPECT_GE(outermost, 3);
  EXPECT_GE(refused, 1);
}

TEST(FlowTest, LoopsAndBranchesLieWithinEachOther) {
  GraphSession s;
  const Output x = Scalar("x");
  // The loop squares x i times for the even i of 0..3, else adds a constant that is made inside.
  const Values end = tenon::WhileLoop(
      {0, x}, [](const Values& v) { return v[0] < 4; },
      [&](const Values& v) -> Values {
        const Output even = Equal(v[0] % 2, 0);
        const Output next = Cond(
            even,
            [&] {
              return tenon::WhileLoop(
                  {0, v[1]}, [&](const Values& u) { return u[0] < v[0]; },
                  [&](const Values& u) -> Values {
                    return {u[0] + 1, u[1] * x};
                  })[1];
            },
            [&] { return v[1] + 0.5; });
        return {v[0] + 1, next};
      });
  const Output dx = Gradients(end[1], {x})[0];
  // i=0: x; 1: x+.5; 2: (x+.5)x^2; 3: + .5
  auto values = s.Run({end[1], dx}, {}, {{"x", Of(2)}});
  ASSERT_OK(values.status());
  EXPECT_DOUBLE_EQ((*values)[0].scalar<double>(), 10.5);
  EXPECT_DOUBLE_EQ((*values)[1].scalar<double>(), 3 * 4 + 2);
}

TEST(FlowTest, MaximumIterationsEndALoop) {
  GraphSession s;
  const Output end = tenon::WhileLoop(
      {0}, [](const Values&) { return Const(true); },
      [](const Values& v) -> Values { return {v[0] + 1}; }, {.maximum_iterations = 5})[0];
  EXPECT_EQ(s.Value(end).scalar<int32_t>(), 5);
}

TEST(FlowTest, AShapeThatChangesIsSaid) {
  GraphSession s;
  const auto grow = [](const Values& v) -> Values { return {v[0] + 1, ConcatV2({v[1], v[1]}, 0)}; };
  const auto below = [](const Values& v) { return v[0] < 3; };
  const Output long_one =
      tenon::WhileLoop({0, Const({1.0f})}, below, grow, {.shape_invariants = {Shape(), {-1}}})[1];
  EXPECT_EQ(s.Value(long_one).num_elements(), 8);
  tenon::WhileLoop({0, Const({1.0f})}, below, grow);
  EXPECT_THAT(std::string(s.graph.error().message()),
              HasSubstr("value 1 of a while loop is float[1] before the body and float[2]"));
}

TEST(FlowTest, BranchesOfDifferentDTypesAreAMistake) {
  GraphSession s;
  const Output x = Scalar("x");
  Cond(
      x < 1, [&] { return x; }, [] { return Const(1.0f); });
  EXPECT_THAT(std::string(s.graph.error().message()),
              HasSubstr("value 0 of a Cond is double in one branch, float in the other"));
}

TEST(FlowTest, APredicateOrConditionOfSeveralElementsIsAMistake) {
  const auto one = [] { return Const(1.0f); };
  {
    GraphSession s;
    Cond(Placeholder(DType::kBool, {2}, {.name = "p"}), one, one);
    EXPECT_THAT(std::string(s.graph.error().message()),
                HasSubstr("the predicate of a Cond must be a bool scalar, 'p' is bool[2]"));
  }
  GraphSession s;
  tenon::WhileLoop(
      {Const({1, 2})}, [](const Values& v) { return v[0] < 3; }, [](const Values& v) { return v; });
  EXPECT_THAT(
      std::string(s.graph.error().message()),
      HasSubstr("the condition of a while loop must be a bool scalar, 'while/Less' is bool[2]"));
}

TEST(FlowTest, WhatABranchWaitsForOutsideDoesNotMakeItRun) {
  GraphSession s;
  const Output v = VariableV2(Shape(), DType::kFloat, {.name = "v"});
  const Output set = Assign(v, 0.0f);
  const Output add = AssignAdd(v, 1.0f);
  Node* group = nullptr;
  {
    const ControlDependencies after({add});
    group = NoOp();
  }
  const Output which = Placeholder(DType::kBool, Shape(), {.name = "which"});
  const auto after = [](const Output& node, float value) {
    const ControlDependencies waits({node});
    return Const(value);
  };
  const Output y = Cond(
      which, [&] { return after(add, 1); }, [&] { return after(Output(group), 2); });
  const Output value = Identity(v);
  for (const bool taken : {true, false}) {
    ASSERT_OK(s.Run({}, {set}).status());
    auto ran = s.Run({y}, {}, {{"which", Tensor::Scalar(taken)}});
    ASSERT_OK(ran.status());
    EXPECT_EQ((*ran)[0].scalar<float>(), taken ? 1 : 2);
    EXPECT_EQ(s.Value(value).scalar<float>(), 1);
  }
}

TEST(FlowTest, ABodyMayWaitForWhatIsOutside) {
  GraphSession s;
  const Output v = VariableV2(Shape(), DType::kFloat, {.name = "v"});
  const Output set = Assign(v, 0.0f);
  const Output add = AssignAdd(v, 1.0f);
  const Output end = tenon::WhileLoop(
      {0}, [](const Values& u) { return u[0] < 3; },
      [&](const Values& u) -> Values {
        const ControlDependencies after({add});
        return {u[0] + 1};
      })[0];
  ASSERT_OK(s.Run({}, {set}).status());
  EXPECT_EQ(s.Value(end).scalar<int32_t>(), 3);
}

TEST(FlowTest, WhatOnlyUsesValuesFromOutsideRunsOnceAnIteration) {
  GraphSession s;
  const Output v = VariableV2(Shape(), DType::kFloat, {.name = "v"});
  const Output set = Assign(v, 0.0f);
  const Output by = Placeholder(DType::kFloat, Shape(), {.name = "by"});
  const Output n = Placeholder(DType::kInt32, Shape(), {.name = "n"});
  const Output zero = Placeholder(DType::kInt32, Shape(), {.name = "zero"});
  const auto add = [&](const Values& u) -> Values {
    const ControlDependencies after({AssignAdd(v, by)});
    return {u[0] + 1};
  };
  const auto more = [&](const Values& u) { return u[0] < n; };
  const Output once = tenon::WhileLoop({0}, more, add)[0];
  const Output twice = tenon::WhileLoop({0, 0}, more, [&](const Values& u) -> Values {
    return {u[0] + 1, tenon::WhileLoop({zero}, more, add)[0]};
  })[1];
  const Output value = Identity(v);
  for (const int times : {0, 1, 4}) {
    const Session::Feeds feeds = {{"by", Tensor::Scalar(1.0f)},
                                  {"n", Tensor::Scalar<int32_t>(times)},
                                  {"zero", Tensor::Scalar<int32_t>(0)}};
    ASSERT_OK(s.Run({}, {set}).status());
    ASSERT_OK(s.Run({once}, {}, feeds).status());
    EXPECT_EQ(s.Value(value).scalar<float>(), times);
    ASSERT_OK(s.Run({}, {set}).status());
    ASSERT_OK(s.Run({twice}, {}, feeds).status());
    EXPECT_EQ(s.Value(value).scalar<float>(), times * times);
  }
}

TEST(FlowTest, ABodyMayGiveWhatIsOutside) {
  GraphSession s;
  const Output x = Scalar("x");
  const Values end = tenon::WhileLoop(
      {0, Const(1.0, {.dtype = DType::kDouble})}, [](const Values& u) { return u[0] < 3; },
      [&](const Values& u) -> Values {
        return {u[0] + 1, x};
      });
  const Output dx = Gradients(Square(end[1]), {x})[0];
  auto values = s.Run({end[1], dx}, {}, {{"x", Of(5)}});
  ASSERT_OK(values.status());
  EXPECT_EQ((*values)[0].scalar<double>(), 5);
  EXPECT_EQ((*values)[1].scalar<double>(), 10);
}

TEST(FlowTest, GradientsMayBeTakenWithinABranch) {
  GraphSession s;
  const Output x = Scalar("x");
  const Output y = Cond(
      x < 3, [&] { return Gradients(x * x * x, {x})[0]; }, [&] { return x; });
  for (const double at : {2.0, 4.0}) {
    auto value = s.Run({y}, {}, {{"x", Of(at)}});
    ASSERT_OK(value.status());
    EXPECT_EQ((*value)[0].scalar<double>(), at < 3 ? 12 : 4);
  }
}

TEST(FlowTest, GradientsWithinBranchesAndBodiesDoNotRunWhereTheseDoNot) {
  GraphSession s;
  const Output x = Scalar("x"), n = Scalar("n");
  // x^3's derivative in the inner branch, in a body in the outer one; a Cond before both is passed
  // as a whole.
  const Output before = Cond(
      x < 10, [&] { return x * 1; }, [&] { return x * 0; });
  const auto cube = [&] { return Gradients(before * before * before, {x})[0]; };
  const Output y = Cond(
      n < 3,
      [&] {
        return tenon::WhileLoop(
            {0, x}, [](const Values& v) { return v[0] < 1; },
            [&](const Values& v) -> Values {
              return {v[0] + 1, Cond(
                                    n < 2, [&] { return cube(); }, [&] { return v[1] + 100; })};
            })[1];
      },
      [&] {
        return Cond(
            n < 4, [&] { return cube(); }, [&] { return -x; });
      });
  const Output always = Identity(y);
  for (const auto& [at, wanted] : {std::pair{1.0, 12.0}, {2.5, 102.0}, {3.5, 12.0}, {5.0, -2.0}}) {
    auto value = s.Run({always}, {}, {{"x", Of(2)}, {"n", Of(at)}});
    ASSERT_OK(value.status());
    EXPECT_EQ((*value)[0].scalar<double>(), wanted) << at;
  }
  // The merges are of four Conds, of the loop, and of the Cond before in the two derivatives: none
  // brings to life what its branch left out.
  int merges = 0;
  for (const Node* node : s.graph.nodes()) merges += node->op() == "Merge";
  EXPECT_EQ(merges, 10);
}

TEST(FlowTest, GradientsWithinABodyAreThoseOfOneIteration) {
  GraphSession s;
  const Output x = Scalar("x");
  // x * x * u, by u and by the x that is used in the body; u begins as x too.
  const auto derivative = [&](bool of_x) {
    return tenon::WhileLoop(
        {0, x}, [](const Values& u) { return u[0] < 3; },
        [&](const Values& u) -> Values {
          const Output loss = x * x * u[1];
          return {u[0] + 1, Gradients(loss, {of_x ? x : u[1]})[0]};
        })[1];
  };
  const Output by_x = derivative(true), by_u = derivative(false);
  auto values = s.Run({by_x, by_u}, {}, {{"x", Of(2)}});
  ASSERT_OK(values.status());
  EXPECT_EQ((*values)[0].scalar<double>(), 4 * 4 * 4 * 2);
  EXPECT_EQ((*values)[1].scalar<double>(), 4);
}

TEST(FlowTest, ALoopRunsAtLeastOneIterationAtATime) {
  GraphSession s;
  tenon::WhileLoop(
      {0}, [](const Values& u) { return u[0] < 3; },
      [](const Values& u) -> Values { return {u[0] + 1}; }, {.parallel_iterations = 0});
  EXPECT_THAT(std::string(s.graph.error().message()),
              HasSubstr("parallel_iterations of a while loop must be at least 1, found 0"));
}

TEST(FlowTest, SecondDerivativesGoThroughACond) {
  GraphSession s;
  const Output x = Scalar("x");
  const Output y = Cond(
      x < 1, [&] { return x; }, [&] { return x * x * x; });
  const Output dx = Gradients(y, {x})[0];
  const Output ddx = Gradients(dx, {x})[0];
  auto value = s.Run({ddx}, {}, {{"x", Of(2)}});
  ASSERT_OK(value.status());
  EXPECT_DOUBLE_EQ((*value)[0].scalar<double>(), 12);
}

TEST(GradientsTest, WhatIsGatheredHasAGradientOfRows) {
  GraphSession s;
  const Output table = Placeholder(DType::kFloat, {1000, 2}, {.name = "table"});
  const Output ids = Const({{3, 1}, {3, 9}});
  const Output loss = Sum(Square(GatherV2(Identity(table), ids, 0))) + Sum(GatherV2(table, {1}, 0));
  const Gradient g = SparseGradients(loss, {table})[0];
  ASSERT_OK(s.graph.error());
  ASSERT_TRUE(g.is_sparse());
  Tensor value = Tensor::Zeros(DType::kFloat, Shape({1000, 2}));
  value.data<float>()[2] = 5;
  value.data<float>()[6] = 7;
  auto rows = s.Run({g.slices.values, g.slices.indices, g.slices.dense_shape, g.ToDense()}, {},
                    {{"table", value}});
  ASSERT_OK(rows.status());
  EXPECT_THAT(Numbers((*rows)[1]), ::testing::UnorderedElementsAre(3, 1, 3, 9, 1));
  EXPECT_THAT(Numbers((*rows)[2]), ElementsAre(1000, 2));
  EXPECT_EQ((*rows)[0].num_elements(), 10);
  EXPECT_EQ((*rows)[3].data<float>()[2], 11);  // twice 5, and 1
  EXPECT_EQ((*rows)[3].data<float>()[6], 28);  // twice 7, twice
}

TEST(GradientsTest, AProgramsOwnGradientTakesThePlaceOfTheOps) {
  GraphSession s;
  const Output x = Scalar("x");
  const Output plain = Log(Exp(x) + 1);
  const Output y = WithGradient(
      {x}, {plain}, [&](const Values& dys) { return Values{dys[0] * Sigmoid(x) * 100}; })[0];
  const Output dx = Gradients(y * 2, {x})[0];
  auto value = s.Run({y, dx}, {}, {{"x", Of(0)}});
  ASSERT_OK(value.status());
  EXPECT_DOUBLE_EQ((*value)[0].scalar<double>(), std::log(2.0));
  EXPECT_DOUBLE_EQ((*value)[1].scalar<double>(), 100);
}

TEST(GradientsTest, AProgramsOwnGradientOfAnotherNumberIsAMistake) {
  GraphSession s;
  const Output x = Scalar("x");
  const Output y = WithGradient({x}, {x * 2}, [&](const Values&) { return Values{}; })[0];
  Gradients(y, {x});
  EXPECT_THAT(std::string(s.graph.error().message()), HasSubstr("gave 0 gradients for 1 inputs"));
}

}  // namespace
}  // namespace tenon::testing
