// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "ops/array/constants.h"
#include "ops/state/state_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

TEST(SessionTensor, IsThereInLaterSteps) {
  GraphSession s;
  const Output keep = GetSessionHandle(Const({1.0f, 2.0f}));
  const Tensor handle = s.Value(keep), other = s.Value(keep);
  EXPECT_NE(handle.scalar<TString>(), other.scalar<TString>());
  EXPECT_THAT(Numbers(s.Value(GetSessionTensor(Const(handle), DType::kFloat))), ElementsAre(1, 2));
  EXPECT_THAT(s.Run({GetSessionTensor(Const(handle), DType::kInt32)}),
              IsError(StatusCode::kInvalidArgument, "wanted int32"));
  Node* const drop = DeleteSessionTensor(Const(handle));
  EXPECT_OK(s.Run({}, {drop}));
  EXPECT_THAT(s.Run({}, {drop}), IsError(StatusCode::kInvalidArgument, "Failed to delete"));
  EXPECT_THAT(s.Run({GetSessionTensor(Const(handle), DType::kFloat)}),
              IsError(StatusCode::kInvalidArgument, "is not in the session store"));
  EXPECT_OK(s.Run({GetSessionTensor(Const(other), DType::kFloat)}));
  EXPECT_OK(s.Run({GetSessionHandleV2(Const(3))}));
}

}  // namespace
}  // namespace tenon::testing
