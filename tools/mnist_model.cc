// SPDX-License-Identifier: Apache-2.0
#include "tools/mnist_model.h"

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "ops/random/random_ops.h"
#include "ops/summary/summary_ops.h"
#include "train/layers/convolution.h"
#include "train/layers/dense.h"
#include "train/layers/dropout.h"
#include "train/layers/pooling.h"

namespace tenon::tools {
namespace {

constexpr int64_t kPixels = 784;
constexpr int64_t kHidden = 100;
constexpr int64_t kDigits = 10;

Output ClassicDense(Output input, int64_t inputs, int64_t outputs) {
  const Variable weights("weights", RandomStandardNormal({inputs, outputs}, DType::kFloat));
  const Variable biases("biases", Zeros({outputs}));
  return Add(MatMul(input, weights), biases);
}

/// The predictions; sets the loss.
Output ClassicNetwork(MnistModel* m) {
  Output a, y;
  {
    const NameScope scope("hidden");
    a = Sigmoid(ClassicDense(m->images, kPixels, kHidden));
  }
  {
    const NameScope scope("output");
    y = Softmax(ClassicDense(a, kHidden, kDigits));
  }
  const NameScope scope("cross_entropy");
  m->loss = Mean(-Sum(m->labels * Log(y), {1}));
  return y;
}

Output Mlp(const MnistModel& m) {
  const Output h = Dense(128, {.activation = Relu})(m.images);
  return Dense(kDigits)(Dense(64, {.activation = Relu})(h));
}

Output Conv(MnistModel* m) {
  m->training = PlaceholderWithDefault(Const(false), Shape(), {.name = "training"});
  Output h = Reshape(m->images, {-1, 28, 28, 1});
  h = Convolution2D(32, 3, {.padding = "SAME", .activation = Relu})(h);
  h = MaxPooling2D(h, 2);
  h = Convolution2D(64, 3, {.padding = "SAME", .activation = Relu})(h);
  h = MaxPooling2D(h, 2);
  h = Dense(128, {.activation = Relu})(Flatten(h));
  return Dense(kDigits)(Dropout(h, 0.4, {.training = m->training}));
}

}  // namespace

MnistModel BuildMnistModel(MnistNetwork network, Optimizer& optimizer) {
  MnistModel m;
  const Variable global_step = GlobalStep();
  m.images = Placeholder(DType::kFloat, {-1, kPixels}, {.name = "images"});
  m.labels = Placeholder(DType::kFloat, {-1, kDigits}, {.name = "labels"});
  Output predictions;
  if (network == MnistNetwork::kClassic) {
    predictions = ClassicNetwork(&m);
  } else {
    predictions = network == MnistNetwork::kMlp ? Mlp(m) : Conv(&m);
    const NameScope scope("cross_entropy");
    m.loss = Mean(SoftmaxCrossEntropyWithLogits(predictions, m.labels).loss);
  }
  {
    const NameScope scope("train");
    m.train_op = optimizer.Minimize(m.loss, {.global_step = global_step});
  }
  {
    const NameScope scope("accuracy");
    m.accuracy = Mean(Cast(Equal(ArgMax(predictions, 1), ArgMax(m.labels, 1)), DType::kFloat));
  }
  m.summary = MergeSummary({ScalarSummary("cost", m.loss), ScalarSummary("accuracy", m.accuracy)});
  std::vector<Output> histograms;
  for (const VariableEntry& v : CurrentBuilding().graph->variables()) {
    if (v.trainable) histograms.push_back(HistogramSummary(v.ref->name(), v.value));
  }
  m.histograms = MergeSummary(histograms);
  return m;
}

}  // namespace tenon::tools
