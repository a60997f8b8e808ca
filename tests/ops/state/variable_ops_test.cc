// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <thread>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "ops/state/state_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

class VariableOpsTest : public ::testing::Test {
 protected:
  GraphSession s;
  Output v = VariableV2({2}, DType::kFloat, {.name = "v"});
  Output init = Assign(v, Const({1.0f, 2.0f}));
};

TEST_F(VariableOpsTest, ReadingBeforeTheFirstAssignFails) {
  EXPECT_THAT(s.Run({v}),
              IsError(StatusCode::kFailedPrecondition, "Attempting to use uninitialized value v"));
  const Output add = AssignAdd(v, Const({1.0f, 1.0f}));
  EXPECT_THAT(s.Run({}, {add}),
              IsError(StatusCode::kFailedPrecondition, "Attempting to use uninitialized value v"));
}

TEST_F(VariableOpsTest, IsInitializedAfterAssign) {
  const Output initialized = IsVariableInitialized(v);
  EXPECT_FALSE(s.Value(initialized).scalar<bool>());
  ASSERT_OK(s.Run({}, {init}));
  EXPECT_TRUE(s.Value(initialized).scalar<bool>());
}

TEST_F(VariableOpsTest, AssignGivesTheVariable) {
  EXPECT_THAT(Numbers(s.Value(init)), ElementsAre(1, 2));
  EXPECT_THAT(Numbers(s.Value(v)), ElementsAre(1, 2));
}

TEST_F(VariableOpsTest, AssignAddAndAssignSubChangeTheVariable) {
  const Output add = AssignAdd(v, Const({10.0f, 20.0f}));
  const Output sub = AssignSub(v, Const({1.0f, 1.0f}));
  ASSERT_OK(s.Run({}, {init}));
  EXPECT_THAT(Numbers(s.Value(add)), ElementsAre(11, 22));
  EXPECT_THAT(Numbers(s.Value(sub)), ElementsAre(10, 21));
}

TEST_F(VariableOpsTest, AConstantThatAVariableWasSetToStaysAsItIs) {
  const Output c = Const({1.0f, 1.0f});
  const Output set = Assign(v, c);
  const Output add = AssignAdd(v, c);
  ASSERT_OK(s.Run({}, {set}));
  ASSERT_OK(s.Run({}, {add}));
  EXPECT_THAT(Numbers(s.Value(Identity(c))), ElementsAre(1, 1));
  EXPECT_THAT(Numbers(s.Value(v)), ElementsAre(2, 2));
}

TEST_F(VariableOpsTest, WhatWasReadBeforeAnUpdateStaysAsItWas) {
  ASSERT_OK(s.Run({}, {init}));
  const Tensor before = s.Value(v);
  ASSERT_OK(s.Run({}, {AssignAdd(v, Const({5.0f, 5.0f}))}));
  EXPECT_THAT(Numbers(before), ElementsAre(1, 2));
}

TEST_F(VariableOpsTest, AssignOfAnotherShapeFailsUnlessValidationIsOff) {
  const Output other = Placeholder(DType::kFloat);
  const Output strict = Assign(v, other);
  const Output loose = Assign(v, other, {.validate_shape = false});
  const Session::Feeds feeds = {{other.name(), Tensor::Vector<float>({1, 2, 3})}};
  EXPECT_THAT(s.Run({}, {strict}, feeds),
              IsError(StatusCode::kInvalidArgument,
                      "Assign requires shapes of both tensors to match. lhs shape= [2] rhs shape= "
                      "[3]"));
  ASSERT_OK(s.Run({}, {loose}, feeds));
  EXPECT_THAT(Numbers(s.Value(v)), ElementsAre(1, 2, 3));
}

TEST_F(VariableOpsTest, AWrongShapeThatIsKnownFailsWhenTheGraphIsBuilt) {
  Assign(v, Const({1.0f, 2.0f, 3.0f}));
  EXPECT_THAT(s.graph.error(), IsError(StatusCode::kInvalidArgument, "lhs shape= [2]"));
}

TEST_F(VariableOpsTest, TwoNodesWithOneSharedNameAreOneVariable) {
  const Output a = VariableV2({}, DType::kInt32, {.shared_name = "shared"});
  const Output b = VariableV2({}, DType::kInt32, {.shared_name = "shared"});
  ASSERT_OK(s.Run({}, {Assign(a, Const(7))}));
  EXPECT_THAT(Numbers(s.Value(b)), ElementsAre(7));
  const Output c = VariableV2({}, DType::kFloat, {.shared_name = "shared"});
  EXPECT_THAT(s.Run({IsVariableInitialized(c)}),
              IsError(StatusCode::kInvalidArgument, "Trying to share variable shared"));
}

TEST_F(VariableOpsTest, WhoWaitsForAnUpdateReadsAfterIt) {
  ASSERT_OK(s.Run({}, {init}));
  const Output read = Identity(v), snapshot = Neg(read);
  Output add, late, later;
  {
    // The update needs the read itself, which therefore comes before it.
    const ControlDependencies after({snapshot});
    add = AssignAdd(v, Const({10.0f, 20.0f}));
  }
  {
    const ControlDependencies after({add});
    late = Neg(read);
  }
  {
    // As far as the edges say: over another op, not by a dependency of its own.
    const ControlDependencies after({add});
    later = Add(Const({0.0f, 1.0f}), read);
  }
  const auto values = s.Run({snapshot, late, later});
  ASSERT_OK(values);
  EXPECT_THAT(Numbers((*values)[0]), ElementsAre(-1, -2));
  EXPECT_THAT(Numbers((*values)[1]), ElementsAre(-11, -22));
  EXPECT_THAT(Numbers((*values)[2]), ElementsAre(11, 23));
}

TEST_F(VariableOpsTest, AnUpdateInABranchThatIsNotTakenHoldsUpNobody) {
  ASSERT_OK(s.Run({}, {init}));
  const Output read = Identity(v), taken = Const(false);
  const SwitchOutputs branch = Switch(Const({10.0f, 20.0f}), taken);
  const Output merged = Merge({Neg(branch.output_false), AssignAdd(v, branch.output_true)}).output;
  EXPECT_THAT(Numbers(s.Value(Add(merged, read))), ElementsAre(-9, -18));
}

TEST_F(VariableOpsTest, StringsAndTruthValuesCanBeVariables) {
  const Output text = VariableV2({2}, DType::kString);
  const Output set = Assign(text, Const(std::vector<std::string>{"a", "long enough for the heap"}));
  ASSERT_OK(s.Run({}, {set}));
  EXPECT_EQ(s.Value(text).data<TString>()[1], "long enough for the heap");
}

TEST_F(VariableOpsTest, UpdatesFromManyThreadsAllCount) {
  const Output n = VariableV2({}, DType::kInt64);
  const Output add = AssignAdd(n, Const(1, {.dtype = DType::kInt64}));
  ASSERT_OK(s.Run({}, {Assign(n, Const(0, {.dtype = DType::kInt64}))}));
  ASSERT_OK(s.Run({}, {add}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) ASSERT_OK(s.Run({}, {add}));
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_THAT(Numbers(s.Value(n)), ElementsAre(801));
}

}  // namespace
}  // namespace tenon::testing
