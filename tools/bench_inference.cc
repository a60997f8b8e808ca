// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/base/strings.h"
#include "core/build/building.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/nn/nn_ops.h"
#include "runtime/session/local_session.h"
#include "tools/bench.h"
#include "train/layers/pooling.h"

namespace tenon::tools {
namespace {

/// A constant within `limit` of 0, whose values the peers make too (share/bench/peer_batches.py).
Output Weights(const Shape& shape, double limit) {
  Tensor t(DType::kFloat, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    t.data<float>()[i] = static_cast<float>((i * 7919 % 10007 / 5003.0 - 1) * limit);
  }
  return Const(t);
}

/// Weights of [height, width, channels, filters] or [inputs, outputs], by He's rule.
Output Kernel(const Shape& shape) {
  const int64_t outputs = shape.dim(shape.rank() - 1);
  return Weights(shape, std::sqrt(6.0 * static_cast<double>(outputs) /
                                  static_cast<double>(shape.num_elements())));
}

Output Bias(int64_t size) { return Weights({size}, 0.1); }

Output DenseOf(const Output& x, int64_t inputs, int64_t outputs) {
  return BiasAdd(MatMul(x, Kernel({inputs, outputs})), Bias(outputs));
}

/// The probabilities of the ten digits.
Output FrozenConvNetwork(const Output& images) {
  Output h = Reshape(images, {-1, 28, 28, 1});
  int64_t channels = 1;
  for (const int64_t filters : {32, 64}) {
    h = Conv2D(h, Kernel({3, 3, channels, filters}), {1, 1, 1, 1}, "SAME");
    h = MaxPooling2D(Relu(BiasAdd(h, Bias(filters))), 2);
    channels = filters;
  }
  h = Relu(DenseOf(Reshape(h, {-1, 7 * 7 * 64}), 7 * 7 * 64, 128));
  return Softmax(DenseOf(h, 128, 10));
}

/// Microseconds of a step on one thread, the median of `steps`.
StatusOr<double> InferenceStep(const OpRegistry& ops, int64_t batch, int steps) {
  constexpr int kWarmUp = 20;
  const OneThread one;
  Graph graph(ops);
  const GraphBuilding building(graph);
  const Output images = Placeholder(DType::kFloat, {-1, 784});
  const Output probabilities = FrozenConvNetwork(images);
  TENON_RETURN_IF_ERROR(graph.error());
  LocalSessionOptions options;
  options.threads = 1;
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph, options));
  TENON_ASSIGN_OR_RETURN(const auto step, session->Prepare({images}, {probabilities}, {}));
  Tensor pixels(DType::kFloat, {batch, 784});
  for (int64_t i = 0; i < pixels.num_elements(); ++i) {
    pixels.data<float>()[i] = static_cast<float>(i % 97) / 97;
  }
  std::vector<Tensor> fetched;
  const auto run = [&] { return step->Run({pixels}, &fetched); };
  TENON_RETURN_IF_ERROR(TimeCalls(kWarmUp, run).status());
  TENON_ASSIGN_OR_RETURN(const double seconds, MedianCall(steps, run));
  return seconds * 1e6;
}

BenchRow InferenceRow(const OpRegistry& ops, int64_t batch, int steps) {
  return {StrCat("inference_", batch),
          StrCat("frozen convolutional MNIST, batch ", batch, ", 1 thread"), "us", false,
          [&ops, batch, steps] { return InferenceStep(ops, batch, steps); }};
}

}  // namespace

std::vector<BenchRow> InferenceBenchRows(const OpRegistry& ops) {
  return {InferenceRow(ops, 1, 1000), InferenceRow(ops, 100, 100)};
}

}  // namespace tenon::tools
