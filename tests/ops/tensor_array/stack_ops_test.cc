// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "ops/array/constants.h"
#include "ops/tensor_array/tensor_array_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

class StackOpsTest : public ::testing::Test {
 protected:
  Output Stack(int32_t max_size, DType type = DType::kFloat) {
    return StackV2(Const(max_size), type);
  }
  /// A push after `before`.
  Output Push(Output stack, Output value, const std::vector<Output>& before = {}) {
    const ControlDependencies after(before);
    return StackPushV2(stack, value);
  }
  Output Pop(Output stack, const std::vector<Output>& before, DType type = DType::kFloat) {
    const ControlDependencies after(before);
    return StackPopV2(stack, type);
  }
  GraphSession s;
};

TEST_F(StackOpsTest, GivesBackInReverseOrder) {
  const Output stack = Stack(-1);
  const Output first = Push(stack, Const(1.0f));
  const Output second = Push(stack, Const({2.0f, 3.0f}), {first});
  const Output a = Pop(stack, {second}), b = Pop(stack, {a});
  for (int step = 0; step < 2; ++step) {
    const auto values = s.Run({a, b});
    ASSERT_OK(values);
    EXPECT_EQ((*values)[0].dim(0), 2);
    EXPECT_EQ((*values)[1].scalar<float>(), 1);
  }
}

TEST_F(StackOpsTest, PopOfAnEmptyStackFails) {
  EXPECT_THAT(s.Run({Pop(Stack(-1), {})}), IsError(StatusCode::kInvalidArgument, "is empty"));
}

TEST_F(StackOpsTest, PushBeyondTheLimitFails) {
  const Output stack = Stack(1);
  const Output first = Push(stack, Const(1.0f));
  EXPECT_THAT(s.Run({Push(stack, Const(2.0f), {first})}),
              IsError(StatusCode::kInvalidArgument, "overflowed its max_size (1)"));
}

TEST_F(StackOpsTest, WrongDtypesFail) {
  const Output stack = Stack(-1);
  EXPECT_THAT(s.Run({Push(stack, Const(1))}),
              IsError(StatusCode::kInvalidArgument, "Must have type float but got int32"));
  EXPECT_THAT(s.Run({Pop(stack, {}, DType::kInt32)}),
              IsError(StatusCode::kInvalidArgument, "wanted int32"));
}

TEST_F(StackOpsTest, AClosedStackFails) {
  const Output stack = Stack(-1);
  Node* close = StackCloseV2(stack);
  EXPECT_THAT(s.Run({Push(stack, Const(1.0f), {close})}),
              IsError(StatusCode::kInvalidArgument, "already been closed"));
}

}  // namespace
}  // namespace tenon::testing
