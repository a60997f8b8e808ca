// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
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
  EXPECT_EQ(s.Value(Const(2.5, {.dtype = DType::kDouble})).scalar<double>(), 2.5);
  EXPECT_EQ(s.Value(Const("text")).scalar<TString>(), "text");
  EXPECT_EQ(s.Value(Const(true)).scalar<bool>(), true);
  EXPECT_THAT(Numbers(s.Value(Const(std::vector<int64_t>{1, 2}))), ElementsAre(1, 2));
  EXPECT_EQ(Const(Tensor(DType::kFloat, {2, 3})).shape(), (PartialShape{2, 3}));
}

TEST_F(ConstOpsTest, AValueOfAnotherDtypeIsRefused) {
  NodeBuilder("Const").Attr("value", Tensor::Scalar(1.0f)).Attr("dtype", DType::kInt32).Output();
  EXPECT_THAT(s.graph.error(), IsError(StatusCode::kInvalidArgument, "the value is float"));
}

TEST_F(ConstOpsTest, AnUnfedPlaceholderSaysWhatIsMissing) {
  const Output x = Placeholder(DType::kFloat, {-1, 784}, {.name = "x"});
  const Output y = Placeholder(DType::kInt32, {}, {.name = "y"});
  EXPECT_THAT(s.Run({Identity(x)}),
              IsError(StatusCode::kInvalidArgument,
                      "You must feed a value for placeholder tensor 'x' with dtype float and shape "
                      "[?,784]"));
  EXPECT_THAT(s.Run({Identity(y)}),
              IsError(StatusCode::kInvalidArgument,
                      "You must feed a value for placeholder tensor 'y' with dtype int32"));
}

TEST_F(ConstOpsTest, APlaceholderWithDefaultTakesWhatIsFed) {
  const Output p = PlaceholderWithDefault(Const("model"), Shape());
  EXPECT_EQ(s.Value(p).scalar<TString>(), "model");
  const auto fed = s.Run({Identity(p)}, {}, {{p.name(), Tensor::Scalar("other")}});
  ASSERT_OK(fed);
  EXPECT_EQ((*fed)[0].scalar<TString>(), "other");
}

TEST_F(ConstOpsTest, GradientsStopWhereTheyShould) {
  const auto error = [](auto stop) {
    Graph graph(AllOps());
    GraphBuilding building(graph);
    const Output x = Const(1.0f);
    Gradients(stop(x), x);
    return building.status();
  };
  EXPECT_THAT(error([](Output x) { return StopGradient(x); }),
              IsError(StatusCode::kInvalidArgument, "has no gradient"));
  EXPECT_THAT(error([](Output x) { return PreventGradient(x, {.message = "because"}); }),
              IsError(StatusCode::kInvalidArgument, "because"));
}

TEST_F(ConstOpsTest, IdentityNPassesGradientsToEachInput) {
  const Output x = Const(1.0f), y = Const(2.0f);
  const std::vector<Output> both = IdentityN({x, y});
  const std::vector<Output> grads = Gradients(both[1], {x, y}, {.allow_unconnected = true});
  ASSERT_OK(s.graph.error());
  EXPECT_FALSE(grads[0].exists());
  EXPECT_EQ(s.Value(grads[1]).scalar<float>(), 1);
}

}  // namespace
}  // namespace tenon::testing
