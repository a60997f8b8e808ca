// SPDX-License-Identifier: Apache-2.0
// A training loop over a LIBSVM file, from its lines to the weights.
#include <gmock/gmock.h>

#include <numeric>
#include <random>

#include "core/build/building.h"
#include "data/files/file.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/status_matchers.h"
#include "train/input/input_pipeline.h"
#include "train/layers/dense.h"
#include "train/losses.h"
#include "train/optimizers/gradient_descent.h"
#include "train/variables.h"

namespace tenon::testing {
namespace {

constexpr int kRows = 200;
constexpr int kFeatures = 6;

/// Rows of three features of six, whose label is whether the first half outweighs the second.
std::string SeparableRows() {
  std::mt19937 random(1);
  std::string text = "# label index:value ...\n";
  for (int i = 0; i < kRows; ++i) {
    std::string pairs;
    int balance = 0;
    for (int f = 1 + i % 2; f <= kFeatures; f += 2) {
      const int value = static_cast<int>(random() % 10) + 1;
      balance += f <= kFeatures / 2 ? value : -value;
      StrAppend(&pairs, " ", f, ":", 0.1 * value);
    }
    StrAppend(&text, balance > 0 ? 1 : 0, pairs, "\n");
  }
  return text;
}

TEST(LibsvmTrainingTest, ALogisticRegressionLearnsTheRowsOfAFile) {
  const std::string path = ::testing::TempDir() + TemporaryName("training.svm");
  ASSERT_OK(WriteStringToFile(path, SeparableRows()));
  InputPipeline batches = InputPipeline::FromLibsvm({path}, kFeatures)
                              .Shuffle(kRows, /*seed=*/1)
                              .Repeat(30)
                              .Batch(20)
                              .Prefetch(2);

  Graph graph(AllOps());
  const GraphBuilding building(graph);
  SetRandomSeed(1);
  const Output x = Placeholder(DType::kFloat, {-1, kFeatures});
  const Output labels = Placeholder(DType::kFloat, {-1});
  const Output logits = Squeeze(Dense(1)(x), {.squeeze_dims = {1}});
  const Output loss = losses::SigmoidCrossEntropy(labels, logits);
  const Output right = Equal(Greater(logits, 0), Greater(labels, 0.5));
  const Output accuracy = Mean(Cast(right, DType::kFloat));
  Node* const train = GradientDescent(1.0).Minimize(loss);
  Node* const init = GlobalVariablesInitializer();
  auto session = MakeLocalSession(graph);
  ASSERT_OK(session.status());
  ASSERT_OK((*session)->Run({}, {}, {init}).status());

  std::vector<float> costs, accuracies;
  for (const InputElement& batch : batches) {
    auto fetched = (*session)->Run({{x, batch[0]}, {labels, batch[1]}}, {loss, accuracy}, {train});
    ASSERT_OK(fetched.status());
    costs.push_back((*fetched)[0].scalar<float>());
    accuracies.push_back((*fetched)[1].scalar<float>());
  }
  ASSERT_OK(batches.status());
  ASSERT_EQ(costs.size(), 300u);
  const auto mean_of = [](auto begin, auto end) {
    return std::accumulate(begin, end, 0.0f) / static_cast<float>(end - begin);
  };
  const float first = mean_of(costs.begin(), costs.begin() + 10);
  const float last = mean_of(costs.end() - 10, costs.end());
  EXPECT_LT(last, first / 2) << "the loss fell from " << first << " to " << last;
  EXPECT_GT(mean_of(accuracies.end() - 10, accuracies.end()), 0.9f);
  ASSERT_OK(RemoveFile(path));
}

}  // namespace
}  // namespace tenon::testing
