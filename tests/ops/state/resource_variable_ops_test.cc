// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/gradient/gradients.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/state/state_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

class ResourceVariableOpsTest : public ::testing::Test {
 protected:
  GraphSession s;
  Output v = VarHandleOp(DType::kFloat, {3, 2}, {.name = "v"});
  Node* init = AssignVariableOp(v, Const(Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6})));
  Output read = ReadVariableOp(v, DType::kFloat);
};

TEST_F(ResourceVariableOpsTest, ReadingBeforeTheFirstAssignFails) {
  EXPECT_THAT(s.Run({read}), IsError(StatusCode::kFailedPrecondition,
                                     "Could not find variable v. This could mean that the variable "
                                     "has been deleted. In TF1, it can also mean the variable is "
                                     "uninitialized. Debug info: container=localhost"));
}

TEST_F(ResourceVariableOpsTest, HasTheValueThatWasAssigned) {
  const Output initialized = VarIsInitializedOp(v);
  EXPECT_FALSE(s.Value(initialized).scalar<bool>());
  ASSERT_OK(s.Run({}, {init}));
  EXPECT_TRUE(s.Value(initialized).scalar<bool>());
  EXPECT_EQ(read.shape(), (PartialShape{3, 2}));
  EXPECT_THAT(Numbers(s.Value(read)), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Numbers(s.Value(VariableShape(v, {.out_type = DType::kInt64}))), ElementsAre(3, 2));
}

TEST_F(ResourceVariableOpsTest, AddsAndSubtracts) {
  const Output ones = Const(Tensor::Of<float>({3, 2}, {1, 1, 1, 1, 1, 1}));
  Node* add = AssignAddVariableOp(v, ones);
  Node* sub = AssignSubVariableOp(v, ones);
  ASSERT_OK(s.Run({}, {init}));
  ASSERT_OK(s.Run({}, {add}));
  ASSERT_OK(s.Run({}, {add}));
  ASSERT_OK(s.Run({}, {sub}));
  EXPECT_THAT(Numbers(s.Value(read)), ElementsAre(2, 3, 4, 5, 6, 7));
}

TEST_F(ResourceVariableOpsTest, ADestroyedVariableIsGoneAndCanBeMadeAgain) {
  Node* destroy = DestroyResourceOp(v, {.ignore_lookup_error = false});
  ASSERT_OK(s.Run({}, {init}));
  ASSERT_OK(s.Run({read}));
  ASSERT_OK(s.Run({}, {destroy}));
  EXPECT_THAT(s.Run({read}), IsError(StatusCode::kFailedPrecondition, "uninitialized"));
  EXPECT_THAT(s.Run({}, {destroy}), IsError(StatusCode::kNotFound, "does not exist"));
  ASSERT_OK(s.Run({}, {init}));
  EXPECT_OK(s.Run({read}));
}

TEST_F(ResourceVariableOpsTest, AWrongDtypeIsAnError) {
  ASSERT_OK(s.Run({}, {init}));
  EXPECT_THAT(
      s.Run({ReadVariableOp(v, DType::kInt32)}),
      IsError(StatusCode::kInvalidArgument, "variable with wrong dtype. Expected int32 got float"));
  EXPECT_THAT(s.Run({}, {AssignVariableOp(v, Const(1))}),
              IsError(StatusCode::kInvalidArgument, "variable with wrong dtype"));
}

TEST_F(ResourceVariableOpsTest, ValidatesTheShapeWhenAsked) {
  ASSERT_OK(s.Run({}, {init}));
  const Output other = Const({1.0f});
  EXPECT_THAT(s.Run({}, {AssignVariableOp(v, other, {.validate_shape = true})}),
              IsError(StatusCode::kInvalidArgument, "Expected [3,2] got [1]"));
  ASSERT_OK(s.Run({}, {AssignVariableOp(v, other)}));
  EXPECT_THAT(Numbers(s.Value(read)), ElementsAre(1));
}

TEST_F(ResourceVariableOpsTest, GathersRows) {
  ASSERT_OK(s.Run({}, {init}));
  const Output rows = ResourceGather(v, Const({2, 0}), DType::kFloat);
  EXPECT_EQ(rows.shape(), (PartialShape{2, 2}));
  EXPECT_THAT(Numbers(s.Value(rows)), ElementsAre(5, 6, 1, 2));
  const Output bad = ResourceGather(v, Const({0, 3}), DType::kFloat);
  EXPECT_THAT(s.Run({bad}),
              IsError(StatusCode::kInvalidArgument, "indices[1] = 3 is not in [0, 3)"));
}

TEST_F(ResourceVariableOpsTest, GradientsReachTheHandle) {
  const Output y = Mul(read, read);
  const std::vector<Output> grads = Gradients(y, v);
  ASSERT_OK(s.graph.error());
  ASSERT_OK(s.Run({}, {init}));
  EXPECT_THAT(Numbers(s.Value(grads[0])), ElementsAre(2, 4, 6, 8, 10, 12));
}

TEST_F(ResourceVariableOpsTest, TheGradientOfAGatherAddsUpRows) {
  const Output rows = ResourceGather(v, Const({2, 0, 2}), DType::kFloat);
  const std::vector<Output> grads = Gradients(rows, v);
  ASSERT_OK(s.graph.error());
  ASSERT_OK(s.Run({}, {init}));
  EXPECT_THAT(Numbers(s.Value(grads[0])), ElementsAre(1, 1, 0, 0, 2, 2));
}

TEST_F(ResourceVariableOpsTest, TheGradientOfABatchedGatherStaysInTheBatch) {
  for (const int64_t batch_dims : {1, -1}) {
    const Output rows =
        ResourceGather(v, Const({{1}, {0}, {1}}), DType::kFloat, {.batch_dims = batch_dims});
    const std::vector<Output> grads = Gradients(rows, v);
    ASSERT_OK(s.graph.error());
    ASSERT_OK(s.Run({}, {init}));
    EXPECT_THAT(Numbers(s.Value(rows)), ElementsAre(2, 3, 6));
    EXPECT_THAT(Numbers(s.Value(grads[0])), ElementsAre(0, 1, 1, 0, 0, 1));
  }
}

TEST_F(ResourceVariableOpsTest, TuplesGatherElements) {
  const Output at = Const({{2, 1}, {0, 0}, {2, 1}});
  const Output elements = ResourceGatherNd(v, at, DType::kFloat);
  EXPECT_EQ(elements.shape(), (PartialShape{3}));
  const std::vector<Output> grads = Gradients(elements, v);
  ASSERT_OK(s.graph.error());
  ASSERT_OK(s.Run({}, {init}));
  EXPECT_THAT(Numbers(s.Value(elements)), ElementsAre(6, 1, 6));
  EXPECT_THAT(Numbers(s.Value(grads[0])), ElementsAre(1, 0, 0, 0, 0, 2));
  const Output bad = ResourceGatherNd(v, Const({{0, 2}}), DType::kFloat);
  EXPECT_THAT(s.Run({bad}), IsError(kInvalid, "does not index into param shape [3,2]"));
}

TEST_F(ResourceVariableOpsTest, AReferenceVariableOfTheSameNameIsAnotherOne) {
  const Output ref = VariableV2({2}, DType::kInt32, {.shared_name = "v"});
  const Output set = Assign(ref, Const({7, 8}));
  ASSERT_OK(s.Run({}, {init}));
  EXPECT_THAT(s.Run({ref}), IsError(StatusCode::kFailedPrecondition, "uninitialized value"));
  ASSERT_OK(s.Run({}, {set}));
  EXPECT_THAT(Numbers(s.Value(ref)), ElementsAre(7, 8));
  EXPECT_THAT(Numbers(s.Value(read)), ElementsAre(1, 2, 3, 4, 5, 6));
  ASSERT_OK(s.Run({}, {DestroyResourceOp(v)}));
  EXPECT_THAT(Numbers(s.Value(ref)), ElementsAre(7, 8));
}

TEST_F(ResourceVariableOpsTest, BatchDimsOutOfRangeAreAnError) {
  ASSERT_OK(s.Run({}, {init}));
  for (const int64_t batch_dims : {INT64_MIN, INT64_MAX}) {
    const Output rows = ResourceGather(v, Const({0, 1}), DType::kFloat, {.batch_dims = batch_dims});
    EXPECT_THAT(s.Run({rows}), IsError(kInvalid, "Expected batch_dims in the range [-1, 1]"));
  }
}

}  // namespace
}  // namespace tenon::testing
