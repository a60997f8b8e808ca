// SPDX-License-Identifier: Apache-2.0
// What layers make and share, their mistakes, and their gradients; their values beside TensorFlow's
// are in tests/interop/layers_test.py.
#include <gmock/gmock.h>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "ops/state/state_ops.h"
#include "tests/testing/status_matchers.h"
#include "tests/train/finite_differences.h"
#include "train/layers/attention.h"
#include "train/layers/convolution.h"
#include "train/layers/dense.h"
#include "train/layers/dropout.h"
#include "train/layers/embedding.h"
#include "train/layers/normalization.h"
#include "train/layers/pooling.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Values = std::vector<Output>;

std::vector<std::string> VariableNames(const Graph& graph) {
  std::vector<std::string> names;
  for (const VariableEntry& v : graph.variables()) names.push_back(v.ref->name());
  return names;
}

std::string MistakeOf(const GraphSession& s) { return std::string(s.graph.error().message()); }

Output RegularizationLosses(GraphSession& s) {
  const std::vector<Endpoint>& terms = s.graph.Collection("regularization_losses");
  return AddN(Values(terms.begin(), terms.end()));
}

Output Energy(const Output& y) { return Sum(Square(y) + y * Waves(y.shape().ToShape(), 0.37)); }

TEST(LayersTest, ALayerMakesItsVariablesOnceAndCopiesShareThem) {
  GraphSession s;
  const Dense shared(3);
  const Dense copy = shared;
  const Output a = shared(Waves({2, 4})), b = copy(Waves({5, 4}));
  Dense(3)(a);
  EXPECT_THAT(VariableNames(s.graph),
              ElementsAre("dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"));
  EXPECT_EQ(shared.kernel().ref(), copy.kernel().ref());
  EXPECT_EQ(b.shape(), (PartialShape{5, 3}));
}

TEST(LayersTest, ASharedLayerStaysInTheScopeOfItsFirstCall) {
  GraphSession s;
  const Dense shared(3, {.name = "out"});
  const Output x = Waves({2, 4});
  {
    const NameScope scope("tower");
    shared(x);
  }
  const Output y = shared(x);
  EXPECT_THAT(VariableNames(s.graph), ElementsAre("tower/out/kernel", "tower/out/bias"));
  EXPECT_EQ(y.node->name(), "tower/out/BiasAdd_1");
}

TEST(LayersTest, ALayerOfAnotherGraphIsAMistake) {
  const Dense dense(3);
  {
    GraphSession first;
    dense(Waves({2, 4}));
    ASSERT_OK(first.graph.error());
    GraphSession second;
    dense(Waves({2, 4}));
    EXPECT_THAT(MistakeOf(second),
                HasSubstr("the variables of layer 'dense' are in another graph"));
  }
}

/// As layer.h shows it.
class Scaling {
 public:
  Output operator()(const Input& x) const {
    const InLayer layer(*state_, x.location());
    if (layer.is_first()) state_->gain = MakeWeight("gain", {}, DType::kDouble);
    return x * state_->gain;
  }

 private:
  struct State : LayerState {
    using LayerState::LayerState;
    Variable gain;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>("scaling");
};

TEST(LayersTest, ALayerOfOnesOwnIsAsAnyOther) {
  GraphSession s;
  const Scaling scaling;
  const Output y = Scaling()(scaling(scaling(Waves({2}))));
  EXPECT_THAT(VariableNames(s.graph), ElementsAre("scaling/gain", "scaling_1/gain"));
  ExpectGradientsOfVariables(s, Energy(y));
}

TEST(LayersTest, AMistakeNamesTheLineThatCallsTheLayer) {
  GraphSession s;
  const Dense dense(3);
  dense(Placeholder(DType::kFloat, PartialShape{2, -1}, {.name = "x"}));
  EXPECT_THAT(MistakeOf(s), HasSubstr(StrCat("layers_test.cc:", __LINE__ - 1)));
  EXPECT_THAT(MistakeOf(s), HasSubstr("the input of a dense layer must have a known size in "
                                      "dimension -1; 'x' has shape [2,?]"));
}

TEST(LayersTest, AfterAMistakeLayersDoNothing) {
  GraphSession s;
  const Dense dense(3);
  const Output none = dense(Waves({}));
  EXPECT_FALSE(none.exists());
  const Output image = Convolution2D(2, 3)(none);
  EXPECT_FALSE(BatchNormalization()(image, true).exists());
  EXPECT_FALSE(LayerNormalization()(image).exists());
  EXPECT_FALSE(MaxPooling2D(image, 2).exists());
  EXPECT_FALSE(GlobalMaxPooling(image).exists());
  EXPECT_FALSE(MultiHeadAttention(2, 3)(image, image, image).output.exists());
  EXPECT_FALSE(AdditiveAttention()(image, image, image).output.exists());
  EXPECT_FALSE(ScaledDotProductAttention(image, image, image).output.exists());
  EXPECT_FALSE(Dropout(Flatten(image), 0.5).exists());
  EXPECT_FALSE(dense(Waves({2, 2})).exists());
  EXPECT_THAT(VariableNames(s.graph), ElementsAre());
}

TEST(LayersTest, VariablesOfALayerInALoopOrBranchAreOutside) {
  GraphSession s;
  const Dense dense(3, {.activation = Tanh});
  const Output x = Waves({2, 3});
  const Output end = tenon::WhileLoop(
      {0, x}, [](const Values& v) { return v[0] < 3; },
      [&](const Values& v) -> Values {
        return {v[0] + 1, Cond(
                              v[0] < 2, [&] { return dense(v[1]); }, [&] { return v[1] * 2; })};
      })[1];
  const Output by_hand = dense(dense(x)) * 2;
  const Node* init = GlobalVariablesInitializer();
  ASSERT_OK(s.Run({}, {Output(const_cast<Node*>(init))}).status());
  const auto values = s.Run({end, by_hand});
  ASSERT_OK(values.status());
  EXPECT_EQ(Numbers((*values)[0]), Numbers((*values)[1]));
}

TEST(LayersTest, ScopesOfBranchesAndLoopsAreNotInTheNamesOfVariables) {
  GraphSession s;
  const Output x = Waves({2, 3}), which = Const(true);
  const auto dense = [&](const Output& in) {
    return Dense(3, {.kernel_regularizer = L2Regularizer(0.1)})(in);
  };
  const Output y = Case({{which, [&] { return dense(x); }}}, [&] {
    const NameScope tower("tower");
    return Cond(
        which,
        [&] {
          const Variable own("own", Tensor::Scalar(2.0));  // as tf.Variable: in all scopes
          const Output h = dense(x);
          return h * MakeWeight("gain", {}, DType::kDouble) * own;
        },
        [&] {
          const NameScope same("cond");  // of a name that a branch has too
          return dense(x);
        });
  });
  const Output end = tenon::WhileLoop(
      {0, y}, [](const Values& v) { return v[0] < 2; },
      [&](const Values& v) -> Values {
        const Output counted = Cast(GlobalStep(), DType::kDouble);
        const auto parts = [] {
          const NoControlDependencies always;  // outside the loop, within its scope
          return PartitionedVariable("parts", {4, 3}, 2, {.dtype = DType::kDouble});
        }();
        const Output rows = EmbeddingLookup(parts, {0, 3});
        return {v[0] + 1, dense(v[1]) + rows + counted};
      })[1];
  ASSERT_OK(s.graph.error());
  EXPECT_THAT(VariableNames(s.graph),
              ElementsAre("dense/kernel", "dense/bias", "case/cond/tower/cond/own",
                          "tower/dense/kernel", "tower/dense/bias", "tower/gain",
                          "tower/cond/dense/kernel", "tower/cond/dense/bias", "global_step",
                          "parts/part_0", "parts/part_1", "dense_1/kernel", "dense_1/bias"));
  EXPECT_EQ(s.graph.variables()[9].part->name, "parts");
  EXPECT_THAT(s.graph.Collection("regularization_losses")[1].node->name(),
              ::testing::StartsWith("tower/dense/kernel/Regularizer/"));
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  ASSERT_OK(s.Run({end}).status());
}

TEST(LayersTest, EveryRegularizedWeightAddsOneTerm) {
  GraphSession s;
  const Dense dense(1, {.kernel_initializer = ConstantInitializer({1, -3}),
                        .kernel_regularizer = L1L2Regularizer(0.5, 0.25)});
  dense(Waves({2, 2}));
  dense(Waves({3, 2}));
  EXPECT_EQ(s.graph.Collection("regularization_losses").size(), 1);
  const Output loss = RegularizationLosses(s);
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  EXPECT_DOUBLE_EQ(s.Value(loss).scalar<double>(), 0.5 * 4 + 0.25 * 10);
}

TEST(LayersTest, GradientsOfDenseLayersAreDifferences) {
  GraphSession s;
  const Output h = Dense(3, {.activation = Tanh})(Waves({2, 2, 4}));
  ExpectGradientsOfVariables(
      s, Energy(Dense(2, {.activation = [](const Output& x) { return Softplus(x) * x; }})(h)));
}

TEST(LayersTest, GradientsOfConvolutionsAreDifferences) {
  GraphSession s;
  const Output x = Waves({2, 5, 6, 2});
  Output loss = Energy(Convolution2D(3, {2, 3}, {.strides = 2, .padding = "SAME"})(x));
  loss = loss + Energy(Convolution2D(2, 2, {.dilation_rate = 2, .activation = Tanh})(x));
  loss = loss + Energy(Convolution2DTranspose(2, 3, {.strides = 2})(x));
  loss = loss + Energy(DepthwiseConvolution2D(2, 2)(x));
  loss = loss + Energy(SeparableConvolution2D(3, 2, 2)(x));
  loss = loss + Energy(Convolution1D(2, 3)(Waves({2, 7, 3})));
  loss = loss + Energy(Convolution3D(2, 2)(Waves({1, 3, 4, 3, 2})));
  ExpectGradientsOfVariables(s, loss);
}

TEST(LayersTest, GradientsOfNormalizationsAreDifferences) {
  GraphSession s;
  const Output h = Dense(3)(Waves({4, 2, 2, 3}));
  Output loss = Energy(BatchNormalization()(h, true));
  loss = loss + Energy(BatchNormalization({.axis = 1, .scale = false})(h, true));
  loss = loss + Energy(LayerNormalization()(h));
  loss = loss + Energy(LayerNormalization({.begin_axis = 2, .center = false})(h));
  ExpectGradientsOfVariables(s, loss);
}

TEST(LayersTest, GradientsOfAttentionsAreDifferences) {
  GraphSession s;
  const Output x = Waves({2, 3, 4}), y = Waves({2, 4, 3});
  const Output mask = Const({{{true, true, false, true}}});
  Output loss = Energy(MultiHeadAttention(2, 3, {.value_dim = 2})(x, y, y, {.mask = mask}).output);
  const Output q = Dense(3)(x);
  loss = loss + Energy(AdditiveAttention()(q, y, y, {.mask = mask}).output);
  loss = loss + Energy(ScaledDotProductAttention(q, y, y, {.mask = mask}).output);
  ExpectGradientsOfVariables(s, loss);
}

TEST(LayersTest, HalvesAreNormalisedAsFloats) {
  GraphSession s;
  // Their variance is beyond what halves hold.
  const Output x = Waves({4, 3, 3, 2}) * 1000 + 2000;
  const Output half = Cast(x, DType::kHalf);
  const Values wide = {BatchNormalization()(x, true), LayerNormalization()(x)};
  const Values narrow = {BatchNormalization()(half, true), LayerNormalization()(half)};
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(narrow[i].dtype(), DType::kHalf);
    const std::vector<double> wanted = Numbers(s.Value(wide[i])),
                              found = Numbers(s.Value(narrow[i]));
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t k = 0; k < wanted.size(); ++k) EXPECT_NEAR(found[k], wanted[k], 0.01);
  }
  for (const VariableEntry& v : s.graph.variables()) {
    EXPECT_NE(Output(v.value).dtype(), DType::kHalf);
  }
}

TEST(LayersTest, ANegativeNumberOfUnitsIsAMistake) {
  GraphSession s;
  Dense(-3)(Waves({2, 4}));
  EXPECT_THAT(MistakeOf(s), HasSubstr("weight 'dense/kernel'"));
}

TEST(LayersTest, AMaskedKeyIsNotSeen) {
  GraphSession s;
  const Output x = Waves({1, 2, 3}), y = Waves({1, 3, 3});
  const Output weights =
      ScaledDotProductAttention(x, y, y, {.mask = Const({{{true, false, true}}})}).weights;
  const std::vector<double> w = Numbers(s.Value(weights));
  EXPECT_EQ(w[1], 0);
  EXPECT_EQ(w[4], 0);
  EXPECT_DOUBLE_EQ(w[0] + w[2], 1);
}

TEST(LayersTest, ChannelsFirstGivesTheSameValues) {
  GraphSession s;
  const Output x = Cast(Waves({2, 5, 6, 3}), DType::kFloat);
  const Output turned = Transpose(x, {0, 3, 1, 2});
  const auto back = [](const Output& y) { return Transpose(y, {0, 2, 3, 1}); };
  const Convolution2D last(4, 3, {.strides = {2, 1}, .padding = "SAME"});
  const Output wanted = last(x);
  const Convolution2D first(4, 3,
                            {.strides = {2, 1},
                             .padding = "SAME",
                             .data_format = "channels_first",
                             .kernel_initializer = [&](const Shape&, DType) {
                               return Reshape(Range(0.0f, 108.0f, 1.0f) * 0.01, {3, 3, 3, 4});
                             }});
  const Output found = back(first(turned));
  const Output copied = Assign(last.kernel().ref(), first.kernel());
  const Output pooled = AveragePooling2D(x, 2);
  const Output pooled_first = back(AveragePooling2D(turned, 2, {.data_format = "channels_first"}));
  const Output mean = GlobalAveragePooling(x);
  const Output mean_first = GlobalAveragePooling(turned, {.data_format = "channels_first"});
  const Output normal = BatchNormalization()(x, true);
  const Output normal_first = back(BatchNormalization({.axis = 1})(turned, true));
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  ASSERT_OK(s.Run({}, {copied}).status());
  for (const auto& [a, b] : std::vector<std::pair<Output, Output>>{
           {wanted, found}, {pooled, pooled_first}, {mean, mean_first}, {normal, normal_first}}) {
    const std::vector<double> one = Numbers(s.Value(a)), other = Numbers(s.Value(b));
    ASSERT_EQ(one.size(), other.size());
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_NEAR(one[i], other[i], 1e-5 * (1 + std::abs(one[i]))) << a.name();
    }
  }
}

TEST(LayersTest, ALayerWithoutUnitsIsAMistake) {
  const auto mistake = [](const std::function<void()>& build) {
    GraphSession s;
    build();
    return MistakeOf(s);
  };
  EXPECT_THAT(mistake([] {
                Dense(0)(Waves({2, 3}));
              }),
              HasSubstr("weight 'dense/kernel': its shape is [3,0], and it must have elements"));
  EXPECT_THAT(mistake([] {
                Convolution2D(0, 3)(Waves({1, 4, 4, 1}));
              }),
              HasSubstr("its shape is [3,3,1,0]"));
  EXPECT_THAT(mistake([] {
                Convolution2D(2, 0)(Waves({1, 4, 4, 1}));
              }),
              HasSubstr("its shape is [0,0,1,2]"));
}

TEST(LayersTest, AWindowLargerThanTheImageIsAMistake) {
  const auto mistake = [](const std::function<void(const Output& x)>& build) {
    GraphSession s;
    build(Placeholder(DType::kFloat, PartialShape({-1, 8, 8, 3})));
    return MistakeOf(s);
  };
  const auto wanted = HasSubstr("Negative dimension size caused by subtracting 9 from 8");
  EXPECT_THAT(mistake([](const Output& x) { Convolution2D(4, 9)(x); }), wanted);
  EXPECT_THAT(mistake([](const Output& x) { MaxPooling2D(x, 9); }), wanted);
  EXPECT_THAT(mistake([](const Output& x) { AveragePooling2D(x, 9); }), wanted);
  EXPECT_EQ(mistake([](const Output& x) { MaxPooling2D(x, 8); }), "");
  EXPECT_EQ(mistake([](const Output& x) { MaxPooling2D(x, 9, {.padding = "SAME"}); }), "");
  {
    GraphSession s;
    MaxPooling2D(Waves({2, 8, 8, 3}), 9);  // all sizes are known
    EXPECT_THAT(MistakeOf(s), wanted);
  }
}

TEST(LayersTest, WrongSizesOfWindowsAreMistakes) {
  {
    GraphSession s;
    Convolution2D(2, {3, 3, 3})(Waves({1, 4, 4, 1}));
    EXPECT_THAT(MistakeOf(s), HasSubstr("sizes, strides and dilations of a convolution must be one "
                                        "or 2"));
  }
  {
    GraphSession s;
    MaxPooling1D(Waves({1, 4, 4}), {3, 3});
    EXPECT_THAT(MistakeOf(s), HasSubstr("sizes and strides of a pooling must be one or 1"));
  }
  {
    GraphSession s;
    Convolution1D(2, 2, {.data_format = "NHWC"})(Waves({1, 4, 4}));
    EXPECT_THAT(MistakeOf(s), HasSubstr("channels_last or channels_first, found 'NHWC'"));
  }
}

TEST(LayersTest, UpdatesInPlaceRunWithTheLayer) {
  GraphSession s;
  const Output x = Waves({8, 3});
  const BatchNormalization norm({.momentum = 0.5, .updates_in_place = true});
  const Output y = norm(x, true);
  EXPECT_TRUE(UpdateOps().empty());
  const Output mean = Mean(x, 0);
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  ASSERT_OK(s.Run({y}).status());
  const std::vector<double> moved = Numbers(s.Value(norm.moving_mean()));
  const std::vector<double> batch = Numbers(s.Value(mean));
  for (int i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(moved[i], batch[i] / 2);
}

TEST(LayersTest, UpdatesInABranchRunInPlaceWhenItIsTaken) {
  GraphSession s;
  const Output x = Waves({8, 3});
  const BatchNormalization norm({.momentum = 0.5, .updates_in_place = true});
  const Output which = Placeholder(DType::kBool, Shape(), {.name = "which"});
  const Output y = Cond(
      which, [&] { return norm(x, true); }, [&] { return x; });
  const Output mean = Mean(x, 0);
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  ASSERT_OK(s.Run({y}, {}, {{"which", Tensor::Scalar(false)}}).status());
  EXPECT_EQ(Numbers(s.Value(norm.moving_mean())), std::vector<double>(3, 0));
  ASSERT_OK(s.Run({y}, {}, {{"which", Tensor::Scalar(true)}}).status());
  EXPECT_DOUBLE_EQ(Numbers(s.Value(norm.moving_mean()))[0], Numbers(s.Value(mean))[0] / 2);
  Cond(
      which, [&] { return BatchNormalization()(x, true); }, [&] { return x; });
  EXPECT_THAT(MistakeOf(s), HasSubstr("in a branch or loop needs updates_in_place"));
}

TEST(LayersTest, TrainingMustBeATruthValue) {
  GraphSession s;
  BatchNormalization()(Waves({8, 3}), Waves({}));
  EXPECT_THAT(MistakeOf(s), HasSubstr("training must be true, false or a bool scalar"));
}

TEST(LayersTest, DropoutKeepsTheMeanAndDoesNothingOutsideTraining) {
  GraphSession s;
  SetRandomSeed(3);
  const Output x = Ones({100, 100});
  const std::vector<double> dropped = Numbers(s.Value(Dropout(x, 0.2)));
  double sum = 0;
  for (const double v : dropped) {
    EXPECT_TRUE(v == 0 || v == 1.25) << v;
    sum += v;
  }
  EXPECT_NEAR(sum / 10000, 1, 0.03);
  EXPECT_EQ(Numbers(s.Value(Dropout(x, 0.2, {.training = false}))), std::vector<double>(10000, 1));
  Dropout(x, 1);
  EXPECT_THAT(MistakeOf(s), HasSubstr("the rate of a dropout must be in [0, 1), found 1"));
}

TEST(LayersTest, ANetworkLearnsWhatItIsShown) {
  GraphSession s;
  SetRandomSeed(2);
  const Output images = Cast(Waves({6, 8, 8, 1}), DType::kFloat);
  const Output labels = Const({0, 1, 2, 2, 1, 0});
  const Output training = Placeholder(DType::kBool, Shape(), {.name = "training"});
  const Initializer draws = GlorotUniformInitializer({.seed = 4});
  Output h = Convolution2D(
      8, 3, {.padding = "SAME", .activation = LeakyRelu, .kernel_initializer = draws})(images);
  h = BatchNormalization({.momentum = 0.5})(h, training);
  h = Dropout(Flatten(MaxPooling2D(h, 2)), 0.1, {.training = training, .seed = 5});
  const Output logits = Dense(3, {.kernel_initializer = draws,
                                  .kernel_regularizer = L2Regularizer(1e-4),
                                  .name = "logits"})(h);
  const Output loss =
      Mean(SparseSoftmaxCrossEntropyWithLogits(logits, labels).loss) + RegularizationLosses(s);
  const Output right =
      Mean(Cast(Equal(ArgMax(logits, 1), Cast(labels, DType::kInt64)), DType::kFloat));
  Values variables;
  for (const VariableEntry& v : s.graph.variables()) {
    if (v.trainable) variables.emplace_back(v.ref);
  }
  const Values gradients = Gradients(loss, variables);
  Values updates = UpdateOps();
  {
    const ControlDependencies first(gradients);
    for (size_t i = 0; i < variables.size(); ++i) {
      updates.push_back(AssignSub(variables[i], gradients[i] * 0.1));
    }
  }
  ASSERT_OK(s.Run({}, {GlobalVariablesInitializer()}).status());
  for (int i = 0; i < 200; ++i) {
    ASSERT_OK(s.Run({}, updates, {{"training", Tensor::Scalar(true)}}).status());
  }
  const auto end = s.Run({right, loss}, {}, {{"training", Tensor::Scalar(false)}});
  ASSERT_OK(end.status());
  EXPECT_EQ((*end)[0].scalar<float>(), 1);
  EXPECT_LT((*end)[1].scalar<float>(), 0.1);
}

TEST(LayersTest, FlattenKeepsWhatTheGraphKnows) {
  GraphSession s;
  const auto shape = [](const PartialShape& of) {
    return Flatten(Placeholder(DType::kFloat, of)).shape().ToString();
  };
  EXPECT_EQ(shape({-1, 2, 3}), "[?,6]");
  EXPECT_EQ(shape({4, -1, 3}), "[4,?]");
  EXPECT_EQ(shape({4}), "[4,1]");
  EXPECT_OK(s.graph.error());
}

}  // namespace
}  // namespace tenon::testing
