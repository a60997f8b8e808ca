// SPDX-License-Identifier: Apache-2.0
// Batch renormalization: what is corrected, and when averages move. Values of whole networks beside
// TensorFlow's are in tests/interop/layers_test.py.
#include <gmock/gmock.h>

#include <cmath>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "tests/testing/status_matchers.h"
#include "tests/train/finite_differences.h"
#include "train/layers/normalization.h"

namespace tenon::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

/// A batch of mean 4 and variance 4.
Output FourAndFour() { return Const({{2.0}, {6.0}}, {.dtype = DType::kDouble}); }

std::vector<double> ValueOf(GraphSession& s, const Variable& v) { return Numbers(s.Value(v)); }

TEST(BatchRenormalizationTest, WithoutLimitsABatchIsNormalisedByTheAverages) {
  GraphSession s;
  const BatchNormalization norm({.epsilon = 0, .renorm = true});
  const Output y = norm(FourAndFour(), true);
  std::vector<std::string> names;
  for (const VariableEntry& v : s.graph.variables()) {
    names.push_back(v.ref->name());
    EXPECT_EQ(v.trainable, names.size() <= 2) << names.back();
  }
  const std::string layer = "batch_normalization/";
  EXPECT_THAT(names, ElementsAre(layer + "gamma", layer + "beta", layer + "moving_mean",
                                 layer + "moving_variance", layer + "moving_stddev",
                                 layer + "renorm_mean", layer + "renorm_stddev"));
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  // The averages begin with 0 and 1.
  EXPECT_THAT(Numbers(s.Value(y)), ElementsAre(2, 6));
}

TEST(BatchRenormalizationTest, CorrectionsAreClipped) {
  GraphSession s;
  const Output most = Placeholder(DType::kDouble, Shape(), {.name = "most"});
  // r is 2 and d is 4; what is corrected is -1 and 1.
  const Output x = FourAndFour();
  const Output a = BatchNormalization(
      {.epsilon = 0, .renorm = true, .renorm_clipping = {.rmax = 1.5, .dmax = most}})(x, true);
  const Output b =
      BatchNormalization({.epsilon = 0, .renorm = true, .renorm_clipping = {.rmin = 3}})(x, true);
  const Output c = BatchNormalization(
      {.epsilon = 0, .renorm = true, .renorm_clipping = {.rmax = 1, .dmax = 0}})(x, true);
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  const auto values = s.Run({a, b, c}, {}, {{"most", Tensor::Scalar(0.25)}});
  ASSERT_OK(values.status());
  EXPECT_THAT(Numbers((*values)[0]), ElementsAre(-1.25, 1.75));
  EXPECT_THAT(Numbers((*values)[1]), ElementsAre(1, 7));
  EXPECT_THAT(Numbers((*values)[2]), ElementsAre(-1, 1));
}

TEST(BatchRenormalizationTest, UpdatesMoveAllAveragesAfterTheCorrections) {
  GraphSession s;
  const BatchNormalization norm({.momentum = 0.5,
                                 .epsilon = 0,
                                 .updates_in_place = true,
                                 .renorm = true,
                                 .renorm_momentum = 0.25});
  const Output y = norm(FourAndFour(), true);
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  EXPECT_THAT(Numbers(s.Value(y)), ElementsAre(2, 6));
  EXPECT_THAT(ValueOf(s, norm.renorm_mean()), ElementsAre(3));
  EXPECT_THAT(ValueOf(s, norm.renorm_stddev()), ElementsAre(1.75));
  EXPECT_THAT(ValueOf(s, norm.moving_mean()), ElementsAre(2));
  EXPECT_THAT(ValueOf(s, norm.moving_stddev()), ElementsAre(1.5));
  EXPECT_THAT(ValueOf(s, norm.moving_variance()), ElementsAre(2.25));
  // (x - 3) / 1.75
  EXPECT_THAT(Numbers(s.Value(y)), Pointwise(DoubleNear(1e-12), {-1 / 1.75, 3 / 1.75}));
}

TEST(BatchRenormalizationTest, OutsideTrainingNothingIsCorrectedOrMoved) {
  GraphSession s;
  const Output training = Placeholder(DType::kBool, Shape(), {.name = "training"});
  const BatchNormalization norm({.momentum = 0.5,
                                 .epsilon = 0,
                                 .moving_variance_initializer = ConstantInitializer(16.0),
                                 .renorm = true});
  const Output y = norm(FourAndFour(), training);
  const std::vector<Output> updates = UpdateOps();
  EXPECT_EQ(updates.size(), 5);
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  EXPECT_THAT(ValueOf(s, norm.renorm_stddev()), ElementsAre(4));
  // The variance alone is changed: what is not moved does not follow from the deviation.
  Node* const set = ChangeVariable(*FindVariable(norm.moving_variance()), "Assign", {1.0});
  ASSERT_OK(s.Run({}, {set}).status());
  const auto out = s.Run({y}, updates, {{"training", Tensor::Scalar(false)}});
  ASSERT_OK(out.status());
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(2, 6));
  EXPECT_THAT(ValueOf(s, norm.moving_mean()), ElementsAre(0));
  EXPECT_THAT(ValueOf(s, norm.moving_variance()), ElementsAre(1));
  EXPECT_THAT(ValueOf(s, norm.renorm_mean()), ElementsAre(0));
  ASSERT_OK(s.Run({y}, updates, {{"training", Tensor::Scalar(true)}}).status());
  EXPECT_THAT(ValueOf(s, norm.moving_mean()), ElementsAre(2));
  EXPECT_THAT(ValueOf(s, norm.moving_variance()), ElementsAre(9));
}

}  // namespace
}  // namespace tenon::testing
