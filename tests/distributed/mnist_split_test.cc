// SPDX-License-Identifier: Apache-2.0
//
// The MNIST network trains the same whether it is whole, replicated in one graph over two workers
// with the mean of their gradients, or cut between its layers over two workers.
#include <gtest/gtest.h>

#include <cmath>

#include "core/gradients.h"
#include "distributed/remote_session.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/nn_ops.h"
#include "ops/state_ops.h"
#include "runtime/local_session.h"
#include "tests/testing/registry.h"
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
  Network(const Scope& root, const std::string& device1, const std::string& device2)
      : root_(root), scope1_(root.WithDevice(device1)), scope2_(root.WithDevice(device2)) {
    AddVariable(scope1_, Waves({784, 100}, 0.05f, 1));
    AddVariable(scope1_, Tensor::Zeros(DType::kFloat, {100}));
    AddVariable(scope2_, Waves({100, 10}, 0.2f, 2));
    AddVariable(scope2_, Tensor::Zeros(DType::kFloat, {10}));
    x_ = Placeholder(scope1_.WithName("x"), DType::kFloat, {kBatch, 784});
    labels_ = Placeholder(scope2_.WithName("labels"), DType::kFloat, {kBatch, 10});
  }

  /// The mean loss of some rows; layers are computed where `first` and `second` say.
  Output Loss(const Scope& first, const Scope& second, Output x, Output labels) const {
    const Output hidden =
        Sigmoid(first, Add(first, MatMul(first, x, variables_[0]), variables_[1]));
    const Output logits = Add(second, MatMul(second, hidden, variables_[2]), variables_[3]);
    return MeanAll(second, SoftmaxCrossEntropyWithLogits(second, logits, labels)[0]);
  }
  Output LossByLayers() const { return Loss(scope1_, scope2_, x_, labels_); }

  std::vector<Output> Gradients(Output loss) const {
    std::vector<Output> gradients;
    EXPECT_OK(AddGradients(root_, {loss}, variables_, {}, &gradients));
    return gradients;
  }

  void Finish(Output loss, const std::vector<Output>& gradients) const {
    std::vector<Output> updates;
    for (size_t i = 0; i < variables_.size(); ++i) {
      const Scope beside = root_.ColocatedWith(variables_[i]);
      updates.push_back(
          ApplyGradientDescent(beside, variables_[i], Const(beside, 0.1f), gradients[i]));
    }
    NoOp(root_.WithName("train").WithControlDependencies(updates));
    NoOp(root_.WithName("init").WithControlDependencies(initializers_));
    Identity(root_.WithName("loss"), loss);
    ASSERT_OK(root_.status());
  }

  Output x() const { return x_; }
  Output labels() const { return labels_; }

 private:
  void AddVariable(const Scope& s, const Tensor& initial) {
    const Output v = VariableV2(s.WithName(StrCat("v", variables_.size())), initial.shape(),
                                DType::kFloat);
    initializers_.push_back(Assign(s, v, Const(s, initial)));
    variables_.push_back(v);
  }

  Scope root_, scope1_, scope2_;
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
    const Scope root = Scope::Root(testing::AllOps());
    const Network network(root, "", "");
    const Output loss = network.LossByLayers();
    network.Finish(loss, network.Gradients(loss));
    return Train(**MakeLocalSession(root.graph()));
  }();
  return losses;
}

void ExpectPlainLosses(const Scope& root) {
  testing::TestCluster cluster(0, 2);
  cluster.StartAll();
  auto session = MakeRemoteSession(cluster.at("worker", 0).target(), root.graph());
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
  const Scope root = Scope::Root(testing::AllOps());
  const Network network(root, kWorker0, kWorker0);
  const Scope input = root.WithDevice(kWorker0);
  const auto x = Split(input, Const(input, 0), network.x(), 2);
  const auto labels = Split(input, Const(input, 0), network.labels(), 2);
  std::vector<Output> losses;
  std::vector<std::vector<Output>> gradients;
  for (int i = 0; i < 2; ++i) {
    const Scope replica = root.WithPrefix(StrCat("replica", i)).WithDevice(i ? kWorker1 : kWorker0);
    losses.push_back(network.Loss(replica, replica, x[i], labels[i]));
    gradients.push_back(network.Gradients(losses[i]));
  }
  const Output half = Const(input, 0.5f);
  std::vector<Output> mean;
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    mean.push_back(Mul(input, AddN(input, {gradients[0][i], gradients[1][i]}), half));
  }
  network.Finish(Mul(input, AddN(input, losses), half), mean);
  ExpectPlainLosses(root);
}

TEST(MnistSplitTest, CutBetweenItsLayersItHasTheSameLosses) {
  const Scope root = Scope::Root(testing::AllOps());
  const Network network(root, kWorker0, kWorker1);
  const Output loss = network.LossByLayers();
  network.Finish(loss, network.Gradients(loss));
  ExpectPlainLosses(root);
}

}  // namespace
}  // namespace tenon
