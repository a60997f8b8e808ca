// SPDX-License-Identifier: Apache-2.0
//
// Images through a bottleneck of 32 numbers and back: learns without labels. Then it draws some
// images and what is left of them.
//
//   example_autoencoder --data share/mnist
#include <CLI/CLI.hpp>

#include <iostream>

#include "examples/parse_flags.h"
#include "tenon/tenon.h"

namespace {

using namespace tenon;  // NOLINT: a program about Tenon

/// Rows of two images beside each other, as characters.
void Draw(const float* image, const float* decoded) {
  constexpr std::string_view kInk = " .:-=+*#%@";
  for (int row = 0; row < 28; row += 2) {
    for (const float* from : {image, decoded}) {
      for (int column = 0; column < 28; ++column) {
        const float grey = std::clamp(from[row * 28 + column], 0.0f, 1.0f);
        std::cout << kInk[static_cast<size_t>(grey * 9)];
      }
      std::cout << "  ";
    }
    std::cout << '\n';
  }
}

Status Train(const std::string& data, int64_t steps) {
  TENON_ASSIGN_OR_RETURN(const Mnist mnist, LoadMnist(data));
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  SetRandomSeed(1);
  const Output x = Placeholder(DType::kFloat, {-1, 784}, {.name = "x"});
  const Output code = Dense(32, {.name = "code"})(Dense(128, {.activation = Relu})(x));
  const Output logits = Dense(784, {.name = "decoded"})(Dense(128, {.activation = Relu})(code));
  const Output loss = losses::SigmoidCrossEntropy(x, logits);
  const Output decoded = Sigmoid(logits);
  const Output error = losses::MeanSquaredError(x, decoded);
  Node* const train = Adam(0.001).Minimize(loss);
  Node* const init = GlobalVariablesInitializer();

  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  InputPipeline batches = InputPipeline::FromTensors({mnist.train.images})
                              .Shuffle(mnist.train.images.dim(0), 1)
                              .Repeat()
                              .Batch(100)
                              .Take(steps)
                              .Prefetch(2);
  int64_t step = 0;
  for (const InputElement& batch : batches) {
    TENON_ASSIGN_OR_RETURN(const float now, session->Run<float>({{x, batch[0]}}, loss, {train}));
    if (++step % 500 == 0) std::cout << "step " << step << ", loss " << now << std::endl;
  }
  TENON_RETURN_IF_ERROR(batches.status());
  TENON_ASSIGN_OR_RETURN(const auto result,
                         session->Run({{x, mnist.test.images}}, {decoded, error}));
  for (const int64_t i : {0, 1}) {
    Draw(mnist.test.images.data<float>() + i * 784, result[0].data<float>() + i * 784);
  }
  std::cout << "mean squared error of the test images: " << result[1].scalar<float>() << '\n';
  return OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  std::string data;
  int64_t steps = 3000;
  CLI::App app("An autoencoder for MNIST");
  app.add_option("--data", data, "Folder of the MNIST files")->required();
  app.add_option("--steps", steps)->check(AtLeast(1));
  if (const auto code = ParseFlags(app, argc, argv)) return *code;
  const Status status = Train(data, steps);
  if (!status.ok()) std::cerr << status << '\n';
  return status.ok() ? 0 : 1;
}
