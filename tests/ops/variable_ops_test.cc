// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <thread>

#include "ops/array_ops.h"
#include "ops/state_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

class VariableOpsTest : public ::testing::Test {
 protected:
  GraphSession s;
  Output v = VariableV2(s.root.WithName("v"), {2}, DType::kFloat);
  Output init = Assign(s.root, v, Const(s.root, {1.0f, 2.0f}));
};

TEST_F(VariableOpsTest, ReadingBeforeTheFirstAssignFails) {
  EXPECT_THAT(s.Run({v}),
              IsError(StatusCode::kFailedPrecondition, "Attempting to use uninitialized value v"));
  const Output add = AssignAdd(s.root, v, Const(s.root, {1.0f, 1.0f}));
  EXPECT_THAT(s.Run({}, {add}),
              IsError(StatusCode::kFailedPrecondition, "Attempting to use uninitialized value v"));
}

TEST_F(VariableOpsTest, IsInitializedAfterAssign) {
  const Output initialized = IsVariableInitialized(s.root, v);
  EXPECT_FALSE(s.Value(initialized).scalar<bool>());
  ASSERT_OK(s.Run({}, {init}));
  EXPECT_TRUE(s.Value(initialized).scalar<bool>());
}

TEST_F(VariableOpsTest, AssignGivesTheVariable) {
  EXPECT_THAT(Numbers(s.Value(init)), ElementsAre(1, 2));
  EXPECT_THAT(Numbers(s.Value(v)), ElementsAre(1, 2));
}

TEST_F(VariableOpsTest, AssignAddAndAssignSubChangeTheVariable) {
  const Output add = AssignAdd(s.root, v, Const(s.root, {10.0f, 20.0f}));
  const Output sub = AssignSub(s.root, v, Const(s.root, {1.0f, 1.0f}));
  ASSERT_OK(s.Run({}, {init}));
  EXPECT_THAT(Numbers(s.Value(add)), ElementsAre(11, 22));
  EXPECT_THAT(Numbers(s.Value(sub)), ElementsAre(10, 21));
}

TEST_F(VariableOpsTest, AConstantThatAVariableWasSetToStaysAsItIs) {
  const Output c = Const(s.root, {1.0f, 1.0f});
  const Output set = Assign(s.root, v, c);
  const Output add = AssignAdd(s.root, v, c);
  ASSERT_OK(s.Run({}, {set}));
  ASSERT_OK(s.Run({}, {add}));
  EXPECT_THAT(Numbers(s.Value(Identity(s.root, c))), ElementsAre(1, 1));
  EXPECT_THAT(Numbers(s.Value(v)), ElementsAre(2, 2));
}

TEST_F(VariableOpsTest, WhatWasReadBeforeAnUpdateStaysAsItWas) {
  ASSERT_OK(s.Run({}, {init}));
  const Tensor before = s.Value(v);
  ASSERT_OK(s.Run({}, {AssignAdd(s.root, v, Const(s.root, {5.0f, 5.0f}))}));
  EXPECT_THAT(Numbers(before), ElementsAre(1, 2));
}

TEST_F(VariableOpsTest, AssignOfAnotherShapeFailsUnlessValidationIsOff) {
  const Output other = Placeholder(s.root, DType::kFloat);
  const Output strict = Assign(s.root, v, other);
  const Output loose = Assign(s.root, v, other, false);
  const Session::Feeds feeds = {{other.name(), Tensor::Vector<float>({1, 2, 3})}};
  EXPECT_THAT(s.Run({}, {strict}, feeds),
              IsError(StatusCode::kInvalidArgument,
                      "Assign requires shapes of both tensors to match. lhs shape= [2] rhs shape= "
                      "[3]"));
  ASSERT_OK(s.Run({}, {loose}, feeds));
  EXPECT_THAT(Numbers(s.Value(v)), ElementsAre(1, 2, 3));
}

TEST_F(VariableOpsTest, AWrongShapeThatIsKnownFailsWhenTheGraphIsBuilt) {
  Assign(s.root, v, Const(s.root, {1.0f, 2.0f, 3.0f}));
  EXPECT_THAT(s.root.status(), IsError(StatusCode::kInvalidArgument, "lhs shape= [2]"));
}

TEST_F(VariableOpsTest, TwoNodesWithOneSharedNameAreOneVariable) {
  const Output a = VariableV2(s.root, {}, DType::kInt32, "", "shared");
  const Output b = VariableV2(s.root, {}, DType::kInt32, "", "shared");
  ASSERT_OK(s.Run({}, {Assign(s.root, a, Const<int32_t>(s.root, 7))}));
  EXPECT_THAT(Numbers(s.Value(b)), ElementsAre(7));
  const Output c = VariableV2(s.root, {}, DType::kFloat, "", "shared");
  EXPECT_THAT(s.Run({IsVariableInitialized(s.root, c)}),
              IsError(StatusCode::kInvalidArgument, "Trying to share variable shared"));
}

TEST_F(VariableOpsTest, StringsAndTruthValuesCanBeVariables) {
  const Output text = VariableV2(s.root, {2}, DType::kString);
  const Output set = Assign(
      s.root, text, Const(s.root, std::vector<std::string>{"a", "long enough for the heap"}));
  ASSERT_OK(s.Run({}, {set}));
  EXPECT_EQ(s.Value(text).data<TString>()[1], "long enough for the heap");
}

TEST_F(VariableOpsTest, UpdatesFromManyThreadsAllCount) {
  const Output n = VariableV2(s.root, {}, DType::kInt64);
  const Output add = AssignAdd(s.root, n, Const<int64_t>(s.root, 1));
  ASSERT_OK(s.Run({}, {Assign(s.root, n, Const<int64_t>(s.root, 0))}));
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
