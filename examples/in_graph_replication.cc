// SPDX-License-Identifier: Apache-2.0
//
// In-graph replication: one program builds one graph with a replica of the network for each worker,
// which share the variables; a step computes their gradients at once and applies the mean. The
// workers are plain servers.
//
//   example_in_graph_replication --data share/mnist       # replicas on two CPU devices here
//   example_in_graph_replication --data share/mnist --target grpc://HOST:PORT --replicas 2
//
// The second needs a server (tenon serve) for each of /job:ps/task:0, /job:worker/task:0 and
// /job:worker/task:1.
#include <CLI/CLI.hpp>

#include <iostream>

#include "examples/parse_flags.h"
#include "tenon/tenon.h"

namespace {

using namespace tenon;  // NOLINT: a program about Tenon

struct Flags {
  std::string data, target;
  int replicas = 2;
  int64_t steps = 600;
};

/// The network, whose variables are those of the first call.
struct Network {
  Dense hidden{128, {.activation = Relu}}, output{10};
  Output operator()(const Output& x) const { return output(hidden(x)); }
};

Status Train(const Flags& flags) {
  TENON_ASSIGN_OR_RETURN(const Mnist mnist, LoadMnist(flags.data, {.one_hot = false}));
  const bool remote = !flags.target.empty();
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  SetRandomSeed(1);
  const Network network;
  Adam adam(0.001);
  std::vector<Output> xs, labels, costs;
  std::vector<GradientAndVariable> means;
  for (int i = 0; i < flags.replicas; ++i) {
    const std::string device = remote ? StrCat("/job:worker/task:", i) : StrCat("/device:CPU:", i);
    const DeviceScope replica(
        ReplicaDeviceSetter({.ps_tasks = remote ? 1 : 0, .worker_device = device}));
    const NameScope scope(StrCat("replica_", i));
    xs.push_back(Placeholder(DType::kFloat, {-1, 784}, {.name = "x"}));
    labels.push_back(Placeholder(DType::kInt64, {-1}, {.name = "labels"}));
    costs.push_back(losses::SparseSoftmaxCrossEntropy(labels[i], network(xs[i])));
    const auto gradients = adam.ComputeGradients(costs[i]);
    if (i == 0) means = gradients;
    for (size_t k = 0; i > 0 && k < gradients.size(); ++k) {
      means[k].gradient = AddN({means[k].gradient.dense, gradients[k].gradient.dense});
    }
  }
  for (auto& [gradient, variable] : means) {
    gradient = gradient.dense / static_cast<float>(flags.replicas);
  }
  Node* const train = adam.ApplyGradients(means);
  const Output test = Placeholder(DType::kFloat, {-1, 784}, {.name = "test"});
  const Output digits = ArgMax(network(test), 1);
  Node* const init = GlobalVariablesInitializer();

  LocalSessionOptions devices;
  devices.devices.cpus = flags.replicas;
  TENON_ASSIGN_OR_RETURN(const auto session, remote ? MakeRemoteSession(flags.target, graph)
                                                    : MakeLocalSession(graph, devices));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  InputPipeline batches = InputPipeline::FromTensors({mnist.train.images, mnist.train.labels})
                              .Shuffle(mnist.train.images.dim(0), 1)
                              .Repeat()
                              .Batch(100 * flags.replicas)
                              .Take(flags.steps)
                              .Prefetch(2);
  int64_t step = 0;
  for (const InputElement& batch : batches) {
    Session::Feeds feeds;
    for (int i = 0; i < flags.replicas; ++i) {
      feeds.emplace_back(xs[i].name(), batch[0].Slice(i * 100, i * 100 + 100));
      feeds.emplace_back(labels[i].name(), batch[1].Slice(i * 100, i * 100 + 100));
    }
    TENON_ASSIGN_OR_RETURN(const auto values, session->Run(StepFeeds(feeds), costs, {train}));
    if (++step % 100 == 0) {
      std::cout << "step " << step << ", loss of replica 0: " << values[0].scalar<float>()
                << std::endl;
    }
  }
  TENON_RETURN_IF_ERROR(batches.status());
  TENON_ASSIGN_OR_RETURN(const Tensor found,
                         session->Run<Tensor>({{test, mnist.test.images}}, digits));
  int64_t correct = 0;
  for (int64_t i = 0; i < found.num_elements(); ++i) {
    correct += found.data<int64_t>()[i] == mnist.test.labels.data<int64_t>()[i];
  }
  std::cout << "test accuracy: " << static_cast<double>(correct) / found.num_elements() << '\n';
  return OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("One graph with a replica of the network for each worker");
  app.add_option("--data", flags.data, "Folder of the MNIST files")->required();
  app.add_option("--target", flags.target, "grpc://host:port of any of the servers");
  app.add_option("--replicas", flags.replicas)->check(AtLeast(1));
  app.add_option("--steps", flags.steps)->check(AtLeast(1));
  if (const auto code = ParseFlags(app, argc, argv)) return *code;
  const Status status = Train(flags);
  if (!status.ok()) std::cerr << status << '\n';
  return status.ok() ? 0 : 1;
}
