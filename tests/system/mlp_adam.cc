// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "tenon/tenon.h"

// A network of layers, 784-128-64-10 on MNIST, trained with Adam, saved, and restored into another
// session. token_count_test.py counts its tokens.

using namespace tenon;

Status Train(const std::string& folder) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  Output x = Placeholder(DType::kFloat, {-1, 784});
  Output labels = Placeholder(DType::kInt64);
  Output h = Dense(64, {.activation = Relu})(Dense(128, {.activation = Relu})(x));
  Output logits = Dense(10)(h);
  Output loss = losses::SparseSoftmaxCrossEntropy(labels, logits);
  Output accuracy = Mean(Cast(Equal(ArgMax(logits, 1), labels), DType::kFloat));
  Node* train = Adam().Minimize(loss);
  Node* init = GlobalVariablesInitializer();
  Saver saver;

  TENON_ASSIGN_OR_RETURN(Mnist mnist, LoadMnist("share/mnist", {.one_hot = false}));
  InputPipeline batches = InputPipeline::FromTensors({mnist.train.images, mnist.train.labels})
                              .Shuffle(60000, 1)
                              .Repeat(3)
                              .Batch(100);
  TENON_ASSIGN_OR_RETURN(auto session, MakeLocalSession(graph));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  for (auto& batch : batches) {
    TENON_RETURN_IF_ERROR(session->Run({{x, batch[0]}, {labels, batch[1]}}, {}, {train}).status());
  }
  TENON_ASSIGN_OR_RETURN(std::string prefix, saver.Save(*session, folder + "/model"));

  TENON_ASSIGN_OR_RETURN(auto restored, MakeLocalSession(graph));
  TENON_RETURN_IF_ERROR(saver.Restore(*restored, prefix));
  TENON_ASSIGN_OR_RETURN(
      float result,
      restored->Run<float>({{x, mnist.test.images}, {labels, mnist.test.labels}}, accuracy));
  std::cout << "accuracy " << result << '\n';
  return OkStatus();
}

int main(int, char** argv) { std::cout << Train(argv[1]) << '\n'; }
