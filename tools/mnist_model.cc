// SPDX-License-Identifier: Apache-2.0
#include "tools/mnist_model.h"

#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/nn_ops.h"
#include "ops/random_ops.h"
#include "ops/summary_ops.h"
#include "train/gradient_descent.h"

namespace tenon::tools {
namespace {

constexpr int64_t kPixels = 784;
constexpr int64_t kHidden = 100;
constexpr int64_t kDigits = 10;

Output Dense(const Scope& s, VariableSet* variables, Output input, int64_t inputs,
             int64_t outputs) {
  const Output initial = RandomStandardNormal(
      s, Const(s, {static_cast<int32_t>(inputs), static_cast<int32_t>(outputs)}), DType::kFloat);
  const Output weights = variables->Add(s.WithName("weights"), initial);
  const Output biases =
      variables->Add(s.WithName("biases"), Const(s, Tensor::Zeros(DType::kFloat, {outputs})));
  return Add(s, MatMul(s, input, weights), biases);
}

}  // namespace

MnistModel BuildMnistModel(const Scope& scope, double learning_rate) {
  MnistModel m;
  m.variables.Add(scope.WithName("global_step"), Const(scope, 0.0f), /*trainable=*/false);
  m.global_step = m.variables.all()[0].ref;
  m.images = Placeholder(scope.WithName("images"), DType::kFloat, {-1, kPixels});
  m.labels = Placeholder(scope.WithName("labels"), DType::kFloat, {-1, kDigits});
  const Scope hidden = scope.WithPrefix("hidden"), output = scope.WithPrefix("output");
  const Output a = Sigmoid(hidden, Dense(hidden, &m.variables, m.images, kPixels, kHidden));
  const Output y = Softmax(output, Dense(output, &m.variables, a, kHidden, kDigits));

  const Scope loss = scope.WithPrefix("cross_entropy");
  const Output per_image =
      Neg(loss, Sum(loss, Mul(loss, m.labels, Log(loss, y)), Const(loss, {1})));
  m.cross_entropy = Mean(loss, per_image, Const(loss, {0}));
  m.train_op =
      GradientDescentOptimizer(learning_rate)
          .Minimize(scope.WithPrefix("train"), m.cross_entropy, m.variables, m.global_step);

  const Scope metrics = scope.WithPrefix("accuracy");
  const Output correct = Equal(metrics, ArgMax(metrics, y, Const(metrics, 1)),
                               ArgMax(metrics, m.labels, Const(metrics, 1)));
  m.accuracy = Mean(metrics, Cast(metrics, correct, DType::kFloat), Const(metrics, {0}));
  m.summary = MergeSummary(scope, {ScalarSummary(scope, Const(scope, "cost"), m.cross_entropy),
                                   ScalarSummary(scope, Const(scope, "accuracy"), m.accuracy)});
  std::vector<Output> histograms;
  for (const ModelVariable& v : m.variables.trainable()) {
    histograms.push_back(HistogramSummary(scope, Const(scope, v.name().c_str()), v.value));
  }
  m.histograms = MergeSummary(scope, histograms);
  return m;
}

}  // namespace tenon::tools
