// SPDX-License-Identifier: Apache-2.0
//
// A convolutional network in one process, with checkpoints and TensorBoard: 99 % of the test
// images. Ended by ctrl-C and started again, it goes on.
//
//   example_mnist_conv --data share/mnist --logs DIR && tensorboard --logdir DIR
#include <CLI/CLI.hpp>

#include <iostream>

#include "examples/parse_flags.h"
#include "examples/program_end.h"
#include "tenon/tenon.h"

namespace {

using namespace tenon;  // NOLINT: a program about Tenon

/// Prints a line at once and in one piece: other tasks may print to the same place.
void Say(const std::string& line) { std::cout << line + "\n" << std::flush; }

Status Train(const std::string& data, const std::string& logs, int64_t steps, int64_t save_steps) {
  TENON_ASSIGN_OR_RETURN(const Mnist mnist, LoadMnist(data, {.one_hot = false}));
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  SetRandomSeed(1);
  const Output x = Placeholder(DType::kFloat, {-1, 784}, {.name = "x"});
  const Output labels = Placeholder(DType::kInt64, {-1}, {.name = "labels"});
  const Output training = PlaceholderWithDefault(false, Shape(), {.name = "training"});
  Output h = Reshape(x, {-1, 28, 28, 1});
  h = MaxPooling2D(Convolution2D(32, 3, {.padding = "SAME", .activation = Relu})(h), 2);
  h = MaxPooling2D(Convolution2D(64, 3, {.padding = "SAME", .activation = Relu})(h), 2);
  h = Dense(128, {.activation = Relu})(Flatten(h));
  const Output logits = Dense(10)(Dropout(h, 0.4, {.training = training}));
  const Output loss = losses::SparseSoftmaxCrossEntropy(labels, logits);
  const Output accuracy = Mean(Cast(Equal(ArgMax(logits, 1), labels), DType::kFloat));
  const Variable step = GlobalStep();
  Node* const train = Adam(CosineDecay(0.001, step, steps)).Minimize(loss, {.global_step = step});
  graph.Collection("summaries").push_back(ScalarSummary("loss", loss));
  graph.Collection("summaries").push_back(ScalarSummary("accuracy", accuracy));

  TENON_ASSIGN_OR_RETURN(auto session, MonitoredTrainingSession::Start(
                                           {.checkpoint_dir = logs,
                                            .save_checkpoint_steps = save_steps,
                                            .log_step_count_steps = 100,
                                            .hooks = {StopAtStep(steps), NanTensorHook(loss)},
                                            .notice = Say}));
  InputPipeline batches = InputPipeline::FromTensors({mnist.train.images, mnist.train.labels})
                              .Shuffle(mnist.train.images.dim(0), 1)
                              .Repeat()
                              .Batch(100)
                              .Prefetch(2);
  for (const InputElement& batch : batches) {
    if (session->ShouldStop()) break;
    TENON_RETURN_IF_ERROR(
        session->Run({{x, batch[0]}, {labels, batch[1]}, {training, true}}, {}, {train}).status());
  }
  TENON_RETURN_IF_ERROR(batches.status());
  if (StopSignal::received() != 0) {
    TENON_RETURN_IF_ERROR(session->Close());
    Say(StoppedAfter(session->global_step(), logs));
    return OkStatus();
  }
  float correct = 0;
  for (int64_t i = 0; i < 10000; i += 1000) {
    TENON_ASSIGN_OR_RETURN(const float part, session->RunWithoutHooks<float>(
                                                 {{x, mnist.test.images.Slice(i, i + 1000)},
                                                  {labels, mnist.test.labels.Slice(i, i + 1000)}},
                                                 accuracy));
    correct += part / 10;
  }
  Say(StrCat("test accuracy: ", correct));
  return session->Close();
}

}  // namespace

int main(int argc, char** argv) {
  std::string data, logs;
  int64_t steps = 4400, save_steps = 500;
  CLI::App app("A convolutional network for MNIST");
  app.add_option("--data", data, "Folder of the MNIST files")->required();
  app.add_option("--logs", logs, "Folder of checkpoints and of TensorBoard's files");
  app.add_option("--steps", steps)->check(AtLeast(1));
  app.add_option("--save_steps", save_steps, "Between two checkpoints")->check(AtLeast(1));
  if (const auto code = ParseFlags(app, argc, argv)) return *code;
  return ExitCode(Train(data, logs, steps, save_steps));
}
