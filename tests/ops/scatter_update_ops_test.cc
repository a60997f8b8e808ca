// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/state/state_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

class ScatterUpdateOpsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(s.Run({}, {init, resource_init})); }

  GraphSession s;
  Output initial = Const(Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  Output v = VariableV2({3, 2}, DType::kFloat);
  Output init = Assign(v, initial);
  Output handle = VarHandleOp(DType::kFloat, {3, 2}, {.name = "r"});
  Node* resource_init = AssignVariableOp(handle, initial);
  Output rows = Const({2, 0, 2});
  Output updates = Const(Tensor::Of<float>({3, 2}, {10, 10, 20, 20, 30, 30}));
};

TEST_F(ScatterUpdateOpsTest, UpdateSetsRowsAndTheLastOneStays) {
  EXPECT_THAT(Numbers(s.Value(ScatterUpdate(v, rows, updates))), ElementsAre(20, 20, 3, 4, 30, 30));
}

TEST_F(ScatterUpdateOpsTest, AddAndSubCountRepeatedRows) {
  EXPECT_THAT(Numbers(s.Value(ScatterAdd(v, rows, updates))), ElementsAre(21, 22, 3, 4, 45, 46));
  EXPECT_THAT(Numbers(s.Value(ScatterSub(v, rows, updates))), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(ScatterUpdateOpsTest, AScalarGoesToEveryElementOfTheRows) {
  EXPECT_THAT(Numbers(s.Value(ScatterAdd(v, rows, Const(1.0f)))), ElementsAre(2, 3, 3, 4, 7, 8));
}

TEST_F(ScatterUpdateOpsTest, ResourceVariablesChangeTheSameWay) {
  const Output read = ReadVariableOp(handle, DType::kFloat);
  ASSERT_OK(s.Run({}, {ResourceScatterAdd(handle, rows, updates)}));
  EXPECT_THAT(Numbers(s.Value(read)), ElementsAre(21, 22, 3, 4, 45, 46));
  ASSERT_OK(s.Run({}, {ResourceScatterSub(handle, rows, updates)}));
  EXPECT_THAT(Numbers(s.Value(read)), ElementsAre(1, 2, 3, 4, 5, 6));
  ASSERT_OK(s.Run({}, {ResourceScatterUpdate(handle, rows, updates)}));
  EXPECT_THAT(Numbers(s.Value(read)), ElementsAre(20, 20, 3, 4, 30, 30));
}

TEST_F(ScatterUpdateOpsTest, WrongIndicesAndShapesAreErrorsAndChangeNothing) {
  const Output bad = Const({0, 1, 3});
  EXPECT_THAT(s.Run({ScatterAdd(v, bad, updates)}),
              IsError(StatusCode::kInvalidArgument, "indices[2] = 3 is not in [0, 3)"));
  EXPECT_THAT(s.Run({ScatterUpdate(v, Const({0}), updates)}),
              IsError(StatusCode::kInvalidArgument, "Must have updates.shape"));
  EXPECT_THAT(Numbers(s.Value(v)), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(ScatterUpdateOpsTest, AStridedSliceOfAVariableCanBeAssigned) {
  const auto ints = [](std::vector<int32_t> x) { return Const(x); };
  const Output column =
      StridedSliceAssign(v, ints({0, 1}), ints({0, 2}), ints({1, 1}), Const({7.0f, 8.0f, 9.0f}),
                         {.begin_mask = 1, .end_mask = 1, .shrink_axis_mask = 2});
  EXPECT_THAT(Numbers(s.Value(column)), ElementsAre(1, 7, 3, 8, 5, 9));
}

}  // namespace
}  // namespace tenon::testing
