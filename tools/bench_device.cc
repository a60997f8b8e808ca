// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/build/building.h"
#include "ops/array/array_basic_ops.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_basic_ops.h"
#include "ops/random/random_ops.h"
#include "runtime/session/local_session.h"
#include "tools/bench.h"
#include "tools/mnist_model.h"
#include "train/optimizers/gradient_descent.h"
#include "train/variables.h"

// Rows of a GPU. Each step ends with a fetch, which waits for the GPU; rows of work alone run it
// often within a step, so that the wait is a small part.

namespace tenon::tools {
namespace {

constexpr char kGpu[] = "/device:GPU:0";

/// The median of the seconds that `run` takes, after some that nobody counts: `most` runs, or fewer
/// where they take long.
StatusOr<double> MedianRun(int most, const std::function<Status()>& run) {
  constexpr double kSeconds = 1;
  TENON_RETURN_IF_ERROR(run());  // libraries are loaded, plans made
  TENON_ASSIGN_OR_RETURN(const double once, TimeCalls(1, run));
  const int count = std::clamp(static_cast<int>(kSeconds / std::max(once, 1e-9)), 3, most);
  TENON_RETURN_IF_ERROR(TimeCalls(count / 10, run).status());
  return MedianCall(count, run);
}

/// Microseconds of a step of the MNIST network whose batch comes from the host.
StatusOr<double> MnistOnGpu(const OpRegistry& ops, int64_t batch) {
  Graph graph(ops);
  const GraphBuilding building(graph);
  const DeviceScope on(kGpu);
  SetRandomSeed(1);
  GradientDescent descent(0.001);
  const MnistModel m = BuildMnistModel(MnistNetwork::kClassic, descent);
  Node* const init = GlobalVariablesInitializer();
  TENON_RETURN_IF_ERROR(graph.error());
  LocalSessionOptions options;
  options.devices.gpus = 1;
  options.allow_soft_placement = true;  // of summaries, which no step here runs
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph, options));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  TENON_ASSIGN_OR_RETURN(const auto step,
                         session->Prepare({m.images, m.labels}, {m.loss}, {m.train_op}));
  Tensor images = Tensor::Zeros(DType::kFloat, {batch, 784});
  Tensor labels = Tensor::Zeros(DType::kFloat, {batch, 10});
  for (int64_t i = 0; i < batch * 784; ++i) images.data<float>()[i] = static_cast<float>(i % 97);
  for (int64_t i = 0; i < batch; ++i) labels.data<float>()[i * 10 + i % 10] = 1;
  const std::vector<Tensor> feeds = {images, labels};
  std::vector<Tensor> fetched;
  TENON_ASSIGN_OR_RETURN(const double seconds,
                         MedianRun(1000, [&] { return step->Run(feeds, &fetched); }));
  return seconds * 1e6;
}

/// TFLOP/s of products of square float matrices, several a step.
StatusOr<double> Product(const OpRegistry& ops, int64_t n) {
  constexpr int kProducts = 4;
  Graph graph(ops);
  const GraphBuilding building(graph);
  const DeviceScope on(kGpu);
  SetRandomSeed(1);
  const Variable a("a", RandomStandardNormal({n, n}, DType::kFloat));
  const Variable b("b", RandomStandardNormal({n, n}, DType::kFloat));
  // Each waits for the one before by its values, as layers do.
  Output y = a;
  for (int i = 0; i < kProducts; ++i) y = MatMul(y, b);
  const Output one = Slice(y, {0, 0}, {1, 1});
  Node* const init = GlobalVariablesInitializer();
  TENON_RETURN_IF_ERROR(graph.error());
  LocalSessionOptions options;
  options.devices.gpus = 1;
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph, options));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  TENON_ASSIGN_OR_RETURN(const auto step, session->Prepare({}, {one}));
  std::vector<Tensor> fetched;
  TENON_ASSIGN_OR_RETURN(const double seconds,
                         MedianRun(30, [&] { return step->Run({}, &fetched); }));
  return 2 * std::pow(static_cast<double>(n), 3) * kProducts / seconds / 1e12;
}

/// GB/s of a feed of `mebibytes` that the GPU takes, or of a fetch of what is there.
StatusOr<double> CopyRate(const OpRegistry& ops, int64_t mebibytes, bool in) {
  const int64_t n = mebibytes << 18;
  Graph graph(ops);
  const GraphBuilding building(graph);
  const DeviceScope on(kGpu);
  const Output value = Placeholder(DType::kFloat, {n});
  const Output one = Slice(Neg(value), {0}, {1});
  const Variable there("there", Fill({n}, 1.0f));
  Node* const init = GlobalVariablesInitializer();
  TENON_RETURN_IF_ERROR(graph.error());
  LocalSessionOptions options;
  options.devices.gpus = 1;
  options.allow_soft_placement = true;
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph, options));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  std::vector<Tensor> feeds, fetched;
  std::unique_ptr<PreparedStep> step;
  if (in) {
    feeds.push_back(Tensor::Zeros(DType::kFloat, {n}));
    TENON_ASSIGN_OR_RETURN(step, session->Prepare({value}, {one}));
  } else {
    TENON_ASSIGN_OR_RETURN(step, session->Prepare({}, {there}));
  }
  TENON_ASSIGN_OR_RETURN(const double seconds,
                         MedianRun(50, [&] { return step->Run(feeds, &fetched); }));
  return static_cast<double>(n) * 4 / seconds / 1e9;
}

}  // namespace

std::vector<BenchRow> DeviceBenchRows(const OpRegistry& ops) {
  std::vector<BenchRow> rows = {
      {"gpu_mnist_100", "MNIST step, batch 100 from the host", "us", false,
       [&ops] { return MnistOnGpu(ops, 100); }},
      {"gpu_mnist_4096", "MNIST step, batch 4,096 from the host", "us", false,
       [&ops] { return MnistOnGpu(ops, 4096); }},
      {"gpu_product_4096", "product of 4,096^2 floats", "TFLOP/s", true,
       [&ops] { return Product(ops, 4096); }},
      {"gpu_copy_in", "64 MiB from the host", "GB/s", true,
       [&ops] { return CopyRate(ops, 64, true); }},
      {"gpu_copy_out", "64 MiB to the host", "GB/s", true,
       [&ops] { return CopyRate(ops, 64, false); }},
  };
  // Their sessions put on a GPU what nothing puts elsewhere.
  for (const BenchRow& row : GraphBenchRows(ops)) {
    for (const char* const name :
         {"convolution", "max_pooling", "batch_norm", "embedding", "top_k"}) {
      if (row.name == name) rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace tenon::tools
