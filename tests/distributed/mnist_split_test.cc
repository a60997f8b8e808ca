// SPDX-License-Identifier: Apache-2.0
//
// The MNIST network trains the same whether it is whole, replicated in one graph over two workers
// with the mean of their gradients, or cut between its layers over two workers.
#include <gtest/gtest.h>

#include <cmath>

#include "core/gradient/gradients.h"
#include "distributed/client/remote_session.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "ops/nn/nn_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "ops/training/training_ops.h"
#include "runtime/session/local_session.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"

namespace tenon {
namespace {

constexpr char kWorker0[] = "/job:worker/task:0", kWorker1[] = "/job:worker/task:1";
constexpr int kBatch = 100, kSteps = 20;

/// Numbers that a formula gives, so that all networks start alike and learn from the same.
Tensor Waves(const Shape& shape, float scale, float phase) {
  Tensor t(DType::kFloat, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<float>()[i] = scale * std::sin(phase + static_cast<float>(i % 10007));
  }
  return t;
}

Tensor Labels() {
  Tensor t = Tensor::Zeros(DType::kFloat, {kBatch, 10});
  for (int i = 0; i < kBatch; ++i) t.data<float>()[10 * i + (7 * i + i / 10) % 10] = 1;
  return t;
}

/// The 784-100-10 network with gradient descent.
class Network {
 public:
  Network(Graph& graph, const std::string& device1, const std::string& device2)
      : graph_(graph), device1_(device1), device2_(device2) {
    {
      const DeviceScope first(device1_);
      AddVariable(Waves({784, 100}, 0.05f, 1));
      AddVariable(Tensor::Zeros(DType::kFloat, {100}));
      x_ = Placeholder(DType::kFloat, {kBatch, 784}, {.name = "x"});
    }
    const DeviceScope second(device2_);
    AddVariable(Waves({100, 10}, 0.2f, 2));
    AddVariable(Tensor::Zeros(DType::kFloat, {10}));
    labels_ = Placeholder(DType::kFloat, {kBatch, 10}, {.name = "labels"});
  }

  /// The mean loss of some rows; layers are computed on the devices `first` and `second`.
  Output Loss(const std::string& first, const std::string& second, Output x, Output labels) const {
    const Output hidden = [&] {
      const DeviceScope on(first);
      return Sigmoid(Add(MatMul(x, variables_[0]), variables_[1]));
    }();
    const DeviceScope on(second);
    const Output logits = Add(MatMul(hidden, variables_[2]), variables_[3]);
    return Mean(SoftmaxCrossEntropyWithLogits(logits, labels).loss);
  }
  Output LossByLayers() const { return Loss(device1_, device2_, x_, labels_); }

  std::vector<Output> Gradients(Output loss) const {
    std::vector<Output> gradients = tenon::Gradients(loss, variables_);
    EXPECT_OK(graph_.error());
    return gradients;
  }

  void Finish(Output loss, const std::vector<Output>& gradients) const {
    std::vector<Output> updates;
    for (size_t i = 0; i < variables_.size(); ++i) {
      const ColocateWith beside(variables_[i]);
      updates.push_back(ApplyGradientDescent(variables_[i], 0.1f, gradients[i]));
    }
    {
      const ControlDependencies after(updates);
      NoOp({.name = "train"});
    }
    {
      const ControlDependencies after(initializers_);
      NoOp({.name = "init"});
    }
    Identity(loss, {.name = "loss"});
    ASSERT_OK(graph_.error());
  }

  Output x() const { return x_; }
  Output labels() const { return labels_; }

 private:
  void AddVariable(const Tensor& initial) {
    const Output v =
        VariableV2(initial.shape(), DType::kFloat, {.name = StrCat("v", variables_.size())});
    initializers_.push_back(Assign(v, initial));
    variables_.push_back(v);
  }

  Graph& graph_;
  const std::string device1_, device2_;
  std::vector<Output> variables_, initializers_;
  Output x_, labels_;
};

std::vector<float> Train(Session& session) {
  std::vector<float> losses;
  EXPECT_OK(session.Run({}, {}, {"init"}));
  for (int i = 0; i < kSteps; ++i) {
    const Session::Feeds feeds = {{"x", Waves({kBatch, 784}, 1.0f, static_cast<float>(i % 2))},
                                  {"labels", Labels()}};
    const auto loss = session.Run(feeds, {"loss"});
    EXPECT_OK(loss);
    if (!loss.ok()) return losses;
    losses.push_back((*loss)[0].scalar<float>());
    EXPECT_OK(session.Run(feeds, {}, {"train"}));
  }
  return losses;
}

const std::vector<float>& PlainLosses() {
  static const std::vector<float> losses = [] {
    Graph graph(AllOps());
    GraphBuilding building(graph);
    const Network network(graph, "", "");
    const Output loss = network.LossByLayers();
    network.Finish(loss, network.Gradients(loss));
    return Train(**MakeLocalSession(graph));
  }();
  return losses;
}

void ExpectPlainLosses(const Graph& graph) {
  testing::TestCluster cluster(0, 2);
  cluster.StartAll();
  auto session = MakeRemoteSession(cluster.at("worker", 0).target(), graph);
  ASSERT_OK(session);
  const std::vector<float> found = Train(**session);
  ASSERT_EQ(found.size(), static_cast<size_t>(kSteps));
  for (int i = 0; i < kSteps; ++i) {
    EXPECT_NEAR(found[i] / PlainLosses()[i], 1, 1e-4) << "step " << i;
  }
}

TEST(MnistSplitTest, TheWholeNetworkLearns) {
  EXPECT_LT(PlainLosses().back(), PlainLosses().front());
}

TEST(MnistSplitTest, ReplicatedInOneGraphItHasTheSameLosses) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Network network(graph, kWorker0, kWorker0);
  const auto [x, labels] = [&] {
    const DeviceScope input(kWorker0);
    return std::pair{Split(0, network.x(), 2), Split(0, network.labels(), 2)};
  }();
  std::vector<Output> losses;
  std::vector<std::vector<Output>> gradients;
  for (int i = 0; i < 2; ++i) {
    {
      const NameScope replica(StrCat("replica", i));
      const char* device = i ? kWorker1 : kWorker0;
      losses.push_back(network.Loss(device, device, x[i], labels[i]));
    }
    gradients.push_back(network.Gradients(losses[i]));
  }
  std::vector<Output> mean;
  Output loss;
  {
    const DeviceScope input(kWorker0);
    const Output half = Const(0.5f);
    for (size_t i = 0; i < gradients[0].size(); ++i) {
      mean.push_back(Mul(AddN({gradients[0][i], gradients[1][i]}), half));
    }
    loss = Mul(AddN(losses), half);
  }
  network.Finish(loss, mean);
  ExpectPlainLosses(graph);
}

TEST(MnistSplitTest, CutBetweenItsLayersItHasTheSameLosses) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Network network(graph, kWorker0, kWorker1);
  const Output loss = network.LossByLayers();
  network.Finish(loss, network.Gradients(loss));
  ExpectPlainLosses(graph);
}

}  // namespace
}  // namespace tenon
