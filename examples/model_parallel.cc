// SPDX-License-Identifier: Apache-2.0
//
// Model parallelism: the layers of one network are on different devices, with their variables; what
// flows between them, and the gradients back, are sent.
//
//   example_model_parallel --data share/mnist                        # two CPU devices here
//   example_model_parallel --data share/mnist --target grpc://HOST:PORT \
//       --devices /job:worker/task:0 /job:worker/task:1
#include <CLI/CLI.hpp>

#include <iostream>

#include "examples/parse_flags.h"
#include "tenon/tenon.h"

namespace {

using namespace tenon;  // NOLINT: a program about Tenon

struct Flags {
  std::string data, target;
  std::vector<std::string> devices = {"/device:CPU:0", "/device:CPU:1"};
  int64_t steps = 1000;
};

Status Train(const Flags& flags) {
  TENON_ASSIGN_OR_RETURN(const Mnist mnist, LoadMnist(flags.data, {.one_hot = false}));
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  SetRandomSeed(1);
  const Output x = Placeholder(DType::kFloat, {-1, 784}, {.name = "x"});
  const Output labels = Placeholder(DType::kInt64, {-1}, {.name = "labels"});
  Output h = x;
  for (size_t i = 0; i + 1 < flags.devices.size(); ++i) {
    const DeviceScope device(flags.devices[i]);
    h = Dense(256, {.activation = Relu})(h);
  }
  Output loss, accuracy;
  {
    const DeviceScope device(flags.devices.back());
    const Output logits = Dense(10)(h);
    loss = losses::SparseSoftmaxCrossEntropy(labels, logits);
    accuracy = Mean(Cast(Equal(ArgMax(logits, 1), labels), DType::kFloat));
  }
  // Each variable's update is where it is; so are the gradients, beside the ops they are of.
  Node* const train = Adam(0.001).Minimize(loss);
  Node* const init = GlobalVariablesInitializer();

  LocalSessionOptions devices;
  devices.devices.cpus = static_cast<int>(flags.devices.size());
  TENON_ASSIGN_OR_RETURN(const auto session, flags.target.empty()
                                                 ? MakeLocalSession(graph, devices)
                                                 : MakeRemoteSession(flags.target, graph));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  InputPipeline batches = InputPipeline::FromTensors({mnist.train.images, mnist.train.labels})
                              .Shuffle(mnist.train.images.dim(0), 1)
                              .Repeat()
                              .Batch(100)
                              .Take(flags.steps)
                              .Prefetch(2);
  int64_t step = 0;
  for (const InputElement& batch : batches) {
    TENON_ASSIGN_OR_RETURN(const float now,
                           session->Run<float>({{x, batch[0]}, {labels, batch[1]}}, loss, {train}));
    if (++step % 200 == 0) std::cout << "step " << step << ", loss " << now << std::endl;
  }
  TENON_RETURN_IF_ERROR(batches.status());
  TENON_ASSIGN_OR_RETURN(
      const float result,
      session->Run<float>({{x, mnist.test.images}, {labels, mnist.test.labels}}, accuracy));
  std::cout << "test accuracy: " << result << '\n';
  return OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("A network whose layers are on different devices");
  app.add_option("--data", flags.data, "Folder of the MNIST files")->required();
  app.add_option("--target", flags.target, "grpc://host:port of any of the servers");
  app.add_option("--devices", flags.devices, "Of the layers, from the first to the last");
  app.add_option("--steps", flags.steps)->check(AtLeast(1));
  if (const auto code = ParseFlags(app, argc, argv)) return *code;
  const Status status = Train(flags);
  if (!status.ok()) std::cerr << status << '\n';
  return status.ok() ? 0 : 1;
}
