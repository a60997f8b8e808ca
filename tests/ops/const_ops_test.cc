// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/gradients.h"
#include "ops/array_ops.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

class ConstOpsTest : public ::testing::Test {
 protected:
  GraphSession s;
};

TEST_F(ConstOpsTest, ConstantsOfEveryKind) {
  EXPECT_EQ(s.Value(Const(s.root, 2.5)).scalar<double>(), 2.5);
  EXPECT_EQ(s.Value(Const(s.root, "text")).scalar<TString>(), "text");
  EXPECT_EQ(s.Value(Const(s.root, true)).scalar<bool>(), true);
  EXPECT_THAT(Numbers(s.Value(Const(s.root, std::vector<int64_t>{1, 2}))), ElementsAre(1, 2));
  EXPECT_EQ(Const(s.root, Tensor(DType::kFloat, {2, 3})).shape(), (PartialShape{2, 3}));
}

TEST_F(ConstOpsTest, AValueOfAnotherDtypeIsRefused) {
  s.root.Op("Const").Attr("value", Tensor::Scalar(1.0f)).Attr("dtype", DType::kInt32).Output();
  EXPECT_THAT(s.root.status(), IsError(StatusCode::kInvalidArgument, "the value is float"));
}

TEST_F(ConstOpsTest, AnUnfedPlaceholderSaysWhatIsMissing) {
  const Output x = Placeholder(s.root.WithName("x"), DType::kFloat, {-1, 784});
  const Output y = Placeholder(s.root.WithName("y"), DType::kInt32);
  EXPECT_THAT(s.Run({Identity(s.root, x)}),
              IsError(StatusCode::kInvalidArgument,
                      "You must feed a value for placeholder tensor 'x' with dtype float and shape "
                      "[?,784]"));
  EXPECT_THAT(s.Run({Identity(s.root, y)}),
              IsError(StatusCode::kInvalidArgument,
                      "You must feed a value for placeholder tensor 'y' with dtype int32"));
}

TEST_F(ConstOpsTest, APlaceholderWithDefaultTakesWhatIsFed) {
  const Output p = PlaceholderWithDefault(s.root, Const(s.root, "model"), Shape());
  EXPECT_EQ(s.Value(p).scalar<TString>(), "model");
  const auto fed = s.Run({Identity(s.root, p)}, {}, {{p.name(), Tensor::Scalar("other")}});
  ASSERT_OK(fed);
  EXPECT_EQ((*fed)[0].scalar<TString>(), "other");
}

TEST_F(ConstOpsTest, GradientsStopWhereTheyShould) {
  const Output x = Const(s.root, 1.0f);
  std::vector<Output> grads;
  EXPECT_THAT(AddGradients(s.root, {StopGradient(s.root, x)}, {x}, {}, &grads),
              IsError(StatusCode::kInvalidArgument, "has no gradient"));
  EXPECT_THAT(AddGradients(s.root, {PreventGradient(s.root, x, "because")}, {x}, {}, &grads),
              IsError(StatusCode::kInvalidArgument, "because"));
}

TEST_F(ConstOpsTest, IdentityNPassesGradientsToEachInput) {
  const Output x = Const(s.root, 1.0f), y = Const(s.root, 2.0f);
  const std::vector<Output> both = IdentityN(s.root, {x, y});
  std::vector<Output> grads;
  ASSERT_OK(AddGradients(s.root, {both[1]}, {x, y}, {}, &grads, true));
  EXPECT_FALSE(grads[0]);
  EXPECT_EQ(s.Value(grads[1]).scalar<float>(), 1);
}

}  // namespace
}  // namespace tenon::testing
