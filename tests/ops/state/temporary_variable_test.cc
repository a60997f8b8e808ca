// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/flow.h"
#include "ops/math/operators.h"
#include "ops/state/state_ops.h"
#include "tests/testing/cpu_time.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

TEST(TemporaryVariableTest, LivesForOneStep) {
  GraphSession s;
  const Output v = TemporaryVariable({2}, DType::kFloat, {.var_name = "t"});
  const Output sum = AssignAdd(Assign(v, Const({1.0f, 2.0f})), Const({10.0f, 10.0f}));
  const Output last = DestroyTemporaryVariable(sum, "t");
  for (int step = 0; step < 2; ++step) EXPECT_THAT(Numbers(s.Value(last)), ElementsAre(11, 12));
}

TEST(TemporaryVariableTest, ItsNameIsThatOfTheNodeUnlessItIsGiven) {
  GraphSession s;
  const Output v = TemporaryVariable({}, DType::kFloat);
  const Output last = DestroyTemporaryVariable(Assign(v, Const(3.0f)), v.node->name());
  EXPECT_THAT(Numbers(s.Value(last)), ElementsAre(3));
}

TEST(TemporaryVariableTest, HoldsZerosAtFirst) {
  GraphSession s;
  const DeviceScope on("/device:CPU:0");
  const Output v = TemporaryVariable({2}, DType::kFloat, {.var_name = "t"});
  EXPECT_THAT(Numbers(s.Value(DestroyTemporaryVariable(v, "t"))), ElementsAre(0, 0));
  const Output unknown = TemporaryVariable({-1}, DType::kFloat, {.var_name = "u"});
  EXPECT_THAT(s.Run({DestroyTemporaryVariable(unknown, "u")}),
              IsError(StatusCode::kFailedPrecondition, "uninitialized value"));
}

TEST(TemporaryVariableTest, ALoopsTurnsTakeNoLongerTheMoreThereWere) {
  GraphSession s;
  const DeviceScope on("/device:CPU:0");
  const Output turns = Placeholder(DType::kInt32, Shape{});
  const Output sum = WhileLoop(
      {0, 0.0f}, [&](const auto& v) { return v[0] < turns; },
      [](const auto& v) {
        const Output t = TemporaryVariable({}, DType::kFloat, {.var_name = "t"});
        const Output next = DestroyTemporaryVariable(Assign(t, v[1] + 1.0f), "t");
        return std::vector<Output>{v[0] + 1, next};
      })[1];
  const auto seconds = [&](int32_t n) {
    const CpuTime time;
    const auto found = s.Run({sum}, {}, {{turns.name(), Tensor::Scalar(n)}});
    EXPECT_TRUE(found.ok() && (*found)[0].scalar<float>() == static_cast<float>(n));
    return time.seconds();
  };
  seconds(1);  // opens the session
  const double few = seconds(10000);
  // In proportion 16 times as long; each looking at all before it would make it 100 times.
  EXPECT_LT(seconds(160000), 50 * few);
}

TEST(TemporaryVariableTest, WrongNamesAreErrors) {
  GraphSession s;
  const Output v = TemporaryVariable({}, DType::kFloat, {.var_name = "t"});
  const Output again = TemporaryVariable({}, DType::kFloat, {.var_name = "t"});
  EXPECT_THAT(s.Run({}, {v, again}), IsError(StatusCode::kAlreadyExists, "temporary variable t"));
  const Output assigned = Assign(v, Const(3.0f));
  EXPECT_THAT(s.Run({DestroyTemporaryVariable(assigned, "u")}),
              IsError(StatusCode::kNotFound, "no temporary variable u"));
}

TEST(CountUpToTest, GivesEachNumberOnce) {
  GraphSession s;
  const Output v = VariableV2({}, DType::kInt64);
  const Output handle = VarHandleOp(DType::kInt32, PartialShape({}), {.name = "r"});
  ASSERT_OK(s.Run({}, {Assign(v, Const(Tensor::Scalar<int64_t>(0)))}));
  ASSERT_OK(s.Run({}, {AssignVariableOp(handle, Const(0))}));
  const Output next = CountUpTo(v, 2),
               next_of_resource = ResourceCountUpTo(handle, 2, DType::kInt32);
  for (const int number : {0, 1}) {
    EXPECT_THAT(Numbers(s.Value(next)), ElementsAre(number));
    EXPECT_THAT(Numbers(s.Value(next_of_resource)), ElementsAre(number));
  }
  EXPECT_THAT(s.Run({next}), IsError(StatusCode::kOutOfRange, "Reached limit of 2"));
  EXPECT_THAT(s.Run({next_of_resource}), IsError(StatusCode::kOutOfRange, "Reached limit of 2"));
  EXPECT_THAT(Numbers(s.Value(v)), ElementsAre(2));
  const Output vector = VariableV2({1}, DType::kInt64);
  ASSERT_OK(s.Run({}, {Assign(vector, Const(Tensor::Vector<int64_t>({0})))}));
  EXPECT_THAT(s.Run({CountUpTo(vector, 2)}),
              IsError(StatusCode::kInvalidArgument, "must hold a scalar, found shape [1]"));
}

TEST(DisableCopyOnReadTest, WantsAVariableWithAValue) {
  GraphSession s;
  const Output handle = VarHandleOp(DType::kFloat, {2});
  Node* const disable = DisableCopyOnRead(handle);
  EXPECT_THAT(s.Run({}, {disable}), IsError(StatusCode::kFailedPrecondition, ""));
  ASSERT_OK(s.Run({}, {AssignVariableOp(handle, Const({1.0f, 2.0f}))}));
  EXPECT_OK(s.Run({}, {disable}));
}

}  // namespace
}  // namespace tenon::testing
