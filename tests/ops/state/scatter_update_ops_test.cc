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

TEST_F(ScatterUpdateOpsTest, AStridedSliceIsAssignedWhatBroadcastsToIt) {
  const auto ints = [](std::vector<int32_t> x) { return Const(x); };
  const Output row = Const({7.0f, 8.0f});
  const Output read = ReadVariableOp(handle, DType::kFloat);
  ASSERT_OK(s.Run(
      {}, {ResourceStridedSliceAssign(handle, ints({1, 0}), ints({3, 2}), ints({1, 1}), row)}));
  EXPECT_THAT(Numbers(s.Value(read)), ElementsAre(1, 2, 7, 8, 7, 8));
  const Output column = Const(Tensor::Of<float>({2, 1}, {3, 4}));
  EXPECT_THAT(
      Numbers(s.Value(StridedSliceAssign(v, ints({2, 0}), ints({0, 2}), ints({-1, 1}), column))),
      ElementsAre(1, 2, 4, 4, 3, 3));
  EXPECT_THAT(s.Run({StridedSliceAssign(v, ints({0, 0}), ints({3, 2}), ints({1, 1}),
                                        Const({1.0f, 2.0f, 3.0f}))}),
              IsError(StatusCode::kInvalidArgument, "[3], which does not broadcast"));
}

TEST_F(ScatterUpdateOpsTest, MulDivMinAndMaxCountRepeatedRows) {
  const Output by = Const(Tensor::Of<float>({3, 2}, {2, 2, 3, 3, 4, 4}));
  EXPECT_THAT(Numbers(s.Value(ScatterMul(v, rows, by))), ElementsAre(3, 6, 3, 4, 40, 48));
  EXPECT_THAT(Numbers(s.Value(ScatterDiv(v, rows, by))), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Numbers(s.Value(ScatterMin(v, rows, by))), ElementsAre(1, 2, 3, 4, 2, 2));
  EXPECT_THAT(Numbers(s.Value(ScatterMax(v, rows, by))), ElementsAre(3, 3, 3, 4, 4, 4));
  const Output read = ReadVariableOp(handle, DType::kFloat);
  ASSERT_OK(s.Run({}, {ResourceScatterMul(handle, rows, by)}));
  EXPECT_THAT(Numbers(s.Value(read)), ElementsAre(3, 6, 3, 4, 40, 48));
  ASSERT_OK(s.Run({}, {ResourceScatterDiv(handle, rows, by)}));
  ASSERT_OK(s.Run({}, {ResourceScatterMin(handle, rows, Const(4.5f))}));
  EXPECT_THAT(Numbers(s.Value(read)), ElementsAre(1, 2, 3, 4, 4.5, 4.5));
  ASSERT_OK(s.Run({}, {ResourceScatterMax(handle, rows, Const(4.0f))}));
  EXPECT_THAT(Numbers(s.Value(read)), ElementsAre(4, 4, 3, 4, 4.5, 4.5));
}

TEST_F(ScatterUpdateOpsTest, TuplesNameElementsAndRows) {
  const Output elements = Const(Tensor::Of<int32_t>({3, 2}, {0, 1, 2, 0, 0, 1}));
  const Output change = Const({10.0f, 20.0f, 1.0f});
  EXPECT_THAT(Numbers(s.Value(ScatterNdAdd(v, elements, change))), ElementsAre(1, 13, 3, 4, 25, 6));
  EXPECT_THAT(Numbers(s.Value(ScatterNdSub(v, elements, change))), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Numbers(s.Value(ScatterNdMax(v, elements, change))), ElementsAre(1, 10, 3, 4, 20, 6));
  EXPECT_THAT(Numbers(s.Value(ScatterNdMin(v, elements, change))), ElementsAre(1, 1, 3, 4, 20, 6));
  const Output row = Const(Tensor::Of<int64_t>({1, 1}, {1}));
  const Output two = Const(Tensor::Of<float>({1, 2}, {7, 8}));
  EXPECT_THAT(Numbers(s.Value(ScatterNdUpdate(v, row, two))), ElementsAre(1, 1, 7, 8, 20, 6));
  const Output read = ReadVariableOp(handle, DType::kFloat);
  ASSERT_OK(s.Run({}, {ResourceScatterNdAdd(handle, row, two)}));
  EXPECT_THAT(Numbers(s.Value(read)), ElementsAre(1, 2, 10, 12, 5, 6));
  ASSERT_OK(s.Run({}, {ResourceScatterNdSub(handle, row, two)}));
  ASSERT_OK(s.Run({}, {ResourceScatterNdMax(handle, elements, change)}));
  EXPECT_THAT(Numbers(s.Value(read)), ElementsAre(1, 10, 3, 4, 20, 6));
  ASSERT_OK(s.Run({}, {ResourceScatterNdMin(handle, elements, change)}));
  ASSERT_OK(s.Run({}, {ResourceScatterNdUpdate(handle, row, two)}));
  EXPECT_THAT(Numbers(s.Value(read)), ElementsAre(1, 1, 7, 8, 20, 6));
}

TEST_F(ScatterUpdateOpsTest, WrongTuplesAndDivisorsAreErrorsAndChangeNothing) {
  EXPECT_THAT(s.Run({ScatterNdAdd(v, Const(Tensor::Of<int32_t>({3, 1}, {0, 3, 1})), updates)}),
              IsError(StatusCode::kInvalidArgument, "indices[1] = [3] does not index into shape"));
  EXPECT_THAT(s.Run({ScatterNdAdd(v, Const(Tensor::Of<int32_t>({1, 1}, {0})), updates)}),
              IsError(StatusCode::kInvalidArgument, "updates must have shape [1,2], found [3,2]"));
  const Output ints = VariableV2({2}, DType::kInt32);
  ASSERT_OK(s.Run({}, {Assign(ints, Const({6, 7}))}));
  EXPECT_THAT(s.Run({ScatterDiv(ints, Const({0, 1}), Const({2, 0}))}),
              IsError(StatusCode::kInvalidArgument, "division by zero"));
  EXPECT_THAT(Numbers(s.Value(ints)), ElementsAre(6, 7));
  EXPECT_THAT(Numbers(s.Value(v)), ElementsAre(1, 2, 3, 4, 5, 6));
}

}  // namespace
}  // namespace tenon::testing
