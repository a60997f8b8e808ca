// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/testing/graph_session.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

// Random values that follow from their inputs. Those expected here were computed by TensorFlow.

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

const Tensor kSeed = Tensor::Vector({1, 2}), kThree = Tensor::Vector({3});

TEST(StatelessRandomTest, ValuesAreThoseOfTensorFlow) {
  EXPECT_THAT(RunOpOrDie("StatelessRandomUniform", {kThree, kSeed}).flat<float>(),
              ElementsAre(0.8440604209899902f, 0.19204533100128174f, 0.9962232112884521f));
  EXPECT_THAT(RunOpOrDie("StatelessRandomNormal", {kThree, kSeed}).flat<float>(),
              ElementsAre(0.544110119342804f, 0.20738030970096588f, 0.0735643208026886f));
  const Tensor ints =
      RunOpOrDie("StatelessRandomUniformInt",
                 {Tensor::Vector({5}), kSeed, Tensor::Scalar(-3), Tensor::Scalar(9)});
  EXPECT_THAT(Numbers(ints), ElementsAre(1, 2, 3, 0, 4));
  const Tensor words = RunOpOrDie("StatelessRandomUniformFullInt", {kThree, kSeed});
  EXPECT_THAT(words.flat<uint64_t>(),
              ElementsAre(7464880146280614444u, 1591045637757961278u, 17389275318164050067u));
}

TEST(StatelessRandomTest, TheKeyOfASeedGivesItsValues) {
  const OpResult made = RunOp("StatelessRandomGetKeyCounterAlg", {kSeed});
  EXPECT_THAT(made.outputs[0].flat<uint64_t>(), ElementsAre(10413732777507651514u));
  EXPECT_THAT(made.outputs[1].flat<uint64_t>(), ElementsAre(0u, 17830669156045600267u));
  EXPECT_TRUE(made.outputs[2].Equals(RunOpOrDie("StatelessRandomGetAlg", {})));
  for (const std::string op : {"StatelessRandomUniform", "StatelessTruncatedNormal"}) {
    const Tensor keyed =
        RunOpOrDie(op + "V2", {kThree, made.outputs[0], made.outputs[1], made.outputs[2]});
    EXPECT_TRUE(keyed.Equals(RunOpOrDie(op, {kThree, kSeed}))) << op;
  }
}

TEST(StatelessRandomTest, WrongSeedsKeysAndAlgorithmsAreErrors) {
  const Tensor key = Tensor::Vector<uint64_t>({1}), counter = Tensor::Vector<uint64_t>({1, 2});
  const auto refuse = [](std::string_view op, const std::vector<Tensor>& inputs,
                         std::string_view text) {
    EXPECT_THAT(RunOp(op, inputs, {}, /*hide_inputs=*/true).status,
                IsError(StatusCode::kInvalidArgument, text));
  };
  refuse("StatelessRandomUniform", {kThree, kThree}, "seed must have shape [2], not [1]");
  refuse("StatelessRandomUniform", {Tensor::Vector({-1}), kSeed}, "-1");
  refuse("StatelessRandomUniformV2", {kThree, key, counter, Tensor::Scalar(2)},
         "Unsupported algorithm id: 2");
  refuse("StatelessRandomUniformV2", {kThree, counter, counter, Tensor::Scalar(1)}, "key");
  refuse("StatelessRandomUniformV2", {kThree, key, key, Tensor::Scalar(1)}, "counter");
  refuse("StatelessRandomUniformInt", {kThree, kSeed, Tensor::Scalar(3), Tensor::Scalar(3)},
         "Need minval < maxval, got 3 >= 3");
}

TEST(MultinomialTest, DrawsWhatTensorFlowDraws) {
  const Tensor logits = Tensor::Of<float>({2, 3}, {0, 1, 2, 3, 0, 0});
  EXPECT_THAT(
      Numbers(RunOpOrDie("Multinomial", {logits, Tensor::Scalar(5)}, {{"seed", 3}, {"seed2", 4}})),
      ElementsAre(2, 2, 1, 2, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Numbers(RunOpOrDie("StatelessMultinomial", {logits, Tensor::Scalar(6), kSeed})),
              ElementsAre(2, 2, 1, 2, 2, 2, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(RunOp("Multinomial", {logits, Tensor::Scalar(-1)}, {}, /*hide_inputs=*/true).status,
              IsError(StatusCode::kInvalidArgument, "nonnegative, got -1"));
}

}  // namespace
}  // namespace tenon::testing
