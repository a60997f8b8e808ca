// SPDX-License-Identifier: Apache-2.0
#include "tools/mnist_model.h"

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "ops/random/random_ops.h"
#include "ops/summary/summary_ops.h"
#include "train/optimizers/gradient_descent.h"

namespace tenon::tools {
namespace {

constexpr int64_t kPixels = 784;
constexpr int64_t kHidden = 100;
constexpr int64_t kDigits = 10;

Output Dense(Output input, int64_t inputs, int64_t outputs) {
  const Variable weights("weights", RandomStandardNormal({inputs, outputs}, DType::kFloat));
  const Variable biases("biases", Zeros({outputs}));
  return Add(MatMul(input, weights), biases);
}

}  // namespace

MnistModel BuildMnistModel(double learning_rate) {
  MnistModel m;
  m.global_step = Variable("global_step", 0.0f, {.trainable = false}).ref();
  m.images = Placeholder(DType::kFloat, {-1, kPixels}, {.name = "images"});
  m.labels = Placeholder(DType::kFloat, {-1, kDigits}, {.name = "labels"});
  Output a, y;
  {
    const NameScope scope("hidden");
    a = Sigmoid(Dense(m.images, kPixels, kHidden));
  }
  {
    const NameScope scope("output");
    y = Softmax(Dense(a, kHidden, kDigits));
  }
  {
    const NameScope scope("cross_entropy");
    m.cross_entropy = Mean(-Sum(m.labels * Log(y), {1}));
  }
  {
    const NameScope scope("train");
    m.train_op =
        GradientDescent(learning_rate).Minimize(m.cross_entropy, {.global_step = m.global_step});
  }
  {
    const NameScope scope("accuracy");
    m.accuracy = Mean(Cast(Equal(ArgMax(y, 1), ArgMax(m.labels, 1)), DType::kFloat));
  }
  m.summary = MergeSummary(
      {ScalarSummary("cost", m.cross_entropy), ScalarSummary("accuracy", m.accuracy)});
  std::vector<Output> histograms;
  for (const VariableNodes& v : CurrentBuilding().graph->variables()) {
    if (v.trainable) histograms.push_back(HistogramSummary(v.ref->name(), v.value));
  }
  m.histograms = MergeSummary(histograms);
  return m;
}

}  // namespace tenon::tools
