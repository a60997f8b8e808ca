// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "core/build/building.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "ops/random/initial_values.h"
#include "ops/random/random_ops.h"
#include "runtime/session/local_session.h"
#include "tools/bench.h"
#include "tools/mnist_model.h"
#include "train/layers/dense.h"
#include "train/layers/embedding.h"
#include "train/layers/rnn.h"
#include "train/losses.h"
#include "train/optimizers/adagrad.h"
#include "train/optimizers/adam.h"
#include "train/optimizers/clipping.h"
#include "train/variables.h"

namespace tenon::tools {
namespace {

/// A network's training, and one batch for it.
struct Training {
  std::vector<Output> inputs;
  std::vector<Tensor> batch;
  Output loss;
  Node* train_op = nullptr;
};

/// Numbers below `limit` in an order without pattern.
template <typename T>
Tensor Scattered(const Shape& shape, DType dtype, int64_t limit) {
  Tensor t(dtype, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    t.data<T>()[i] = static_cast<T>(i * 7919 % 10007 % limit);
  }
  return t;
}

Training ConvNetwork() {
  Adam adam(0.001);
  const MnistModel m = BuildMnistModel(MnistNetwork::kConv, adam);
  Tensor images(DType::kFloat, {100, 784});
  for (int64_t i = 0; i < images.num_elements(); ++i) {
    images.data<float>()[i] = static_cast<float>(i % 97) / 97;
  }
  Tensor labels = Tensor::Zeros(DType::kFloat, {100, 10});
  for (int i = 0; i < 100; ++i) labels.data<float>()[i * 10 + i % 10] = 1;
  return {
      {m.images, m.labels, m.training}, {images, labels, Tensor::Scalar(true)}, m.loss, m.train_op};
}

/// As examples/char_lstm.cc.
Training CharLstm() {
  constexpr int64_t kVocabulary = 64, kBatch = 32, kLength = 50;
  const Output ids = Placeholder(DType::kInt32, {-1, -1});
  const Output next = Placeholder(DType::kInt32, {-1, -1});
  const auto [outputs, state] = DynamicRnn(LstmCell(128), Embedding(kVocabulary, 32)(ids));
  const Output loss = losses::SparseSoftmaxCrossEntropy(next, Dense(kVocabulary)(outputs));
  Adam adam(0.003);
  Node* const train = adam.ApplyGradients(ClipByGlobalNorm(adam.ComputeGradients(loss), 5.0),
                                          {.global_step = GlobalStep()});
  const Tensor text = Scattered<int32_t>({kBatch, kLength}, DType::kInt32, kVocabulary);
  return {{ids, next}, {text, text}, loss, train};
}

/// As examples/word2vec.cc.
Training Word2Vec() {
  constexpr int64_t kVocabulary = 5000, kWidth = 64, kBatch = 128, kNegatives = 64;
  const Output center = Placeholder(DType::kInt32, {kBatch});
  const Output context = Placeholder(DType::kInt64, {kBatch});
  const Variable vectors("vectors", RandomUniform({kVocabulary, kWidth}, DType::kFloat) * 2 - 1);
  const Variable weights("weights", RandomNormal({kVocabulary, kWidth}) * 0.1f);
  const Variable biases("biases", Zeros({kVocabulary}));
  const Output v = GatherV2(vectors, center, 0);
  const Output right = Sum(v * GatherV2(weights, context, 0), {1}) + GatherV2(biases, context, 0);
  const Output sampled =
      LogUniformCandidateSampler(ExpandDims(context, 1), 1, kNegatives, true, kVocabulary)
          .sampled_candidates;
  const Output wrong = MatMul(v, GatherV2(weights, sampled, 0), {.transpose_b = true}) +
                       GatherV2(biases, sampled, 0);
  const Output loss = Mean(Softplus(-right) + Sum(Softplus(wrong), {1}));
  Node* const train = Adagrad(0.5).Minimize(loss);
  return {{center, context},
          {Scattered<int32_t>({kBatch}, DType::kInt32, kVocabulary),
           Scattered<int64_t>({kBatch}, DType::kInt64, kVocabulary)},
          loss,
          train};
}

/// Milliseconds of a step on one thread, the median of `steps`.
StatusOr<double> TrainingStep(const OpRegistry& ops, Training (*build)(), int steps) {
  constexpr int kWarmUp = 10;
  const OneThread one;
  Graph graph(ops);
  const GraphBuilding building(graph);
  SetRandomSeed(1);
  const Training t = build();
  Node* const init = GlobalVariablesInitializer();
  TENON_RETURN_IF_ERROR(graph.error());
  LocalSessionOptions options;
  options.threads = 1;
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph, options));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  TENON_ASSIGN_OR_RETURN(const auto step, session->Prepare(t.inputs, {t.loss}, {t.train_op}));
  std::vector<Tensor> fetched;
  const auto run = [&] { return step->Run(t.batch, &fetched); };
  TENON_RETURN_IF_ERROR(TimeCalls(kWarmUp, run).status());
  TENON_ASSIGN_OR_RETURN(const double seconds, MedianCall(steps, run));
  return seconds * 1e3;
}

BenchRow TrainingRow(const OpRegistry& ops, std::string_view name, std::string_view what,
                     Training (*build)(), int steps) {
  return {std::string(name), std::string(what), "ms", false,
          [&ops, build, steps] { return TrainingStep(ops, build, steps); }};
}

}  // namespace

std::vector<BenchRow> TrainingBenchRows(const OpRegistry& ops) {
  return {
      TrainingRow(ops, "conv_step", "convolutional MNIST step, batch 100, 1 thread", ConvNetwork,
                  50),
      TrainingRow(ops, "char_lstm_step", "LSTM step, 32 texts of 50, 128 units, 1 thread", CharLstm,
                  50),
      TrainingRow(ops, "word2vec_step", "word2vec step, batch 128, 64 negatives, 1 thread",
                  Word2Vec, 500),
  };
}

}  // namespace tenon::tools
