// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "tenon/tenon.h"

// The classic network by hand: 784-128-64-10 on MNIST. token_count_test.py counts its tokens.

using namespace tenon;

Output Linear(Output x, int in, int out) {
  return MatMul(x, Variable("weights", RandomNormal({in, out}) * 0.1f)) +
         Variable("biases", Zeros({out}));
}

Status Train() {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  Output x = Placeholder(DType::kFloat);
  Output labels = Placeholder(DType::kInt64);
  Output hidden = Relu(Linear(Relu(Linear(x, 784, 128)), 128, 64));
  Output logits = Linear(hidden, 64, 10);
  Output loss = Mean(SparseSoftmaxCrossEntropyWithLogits(logits, labels).loss);
  Output accuracy = Mean(Cast(Equal(ArgMax(logits, 1), labels), DType::kFloat));
  Node* train = GradientDescent(0.1).Minimize(loss);
  GlobalVariablesInitializer();

  TENON_ASSIGN_OR_RETURN(Mnist mnist, LoadMnist("share/mnist", {.one_hot = false}));
  TENON_ASSIGN_OR_RETURN(auto batches,
                         ShuffledBatches::Create({mnist.train.images, mnist.train.labels}, 1));
  TENON_ASSIGN_OR_RETURN(auto session, MakeLocalSession(graph));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {"init"}).status());
  while (batches.epochs_completed() < 3) {
    TENON_ASSIGN_OR_RETURN(auto batch, batches.Next(100));
    TENON_RETURN_IF_ERROR(session->Run({{x, batch[0]}, {labels, batch[1]}}, {}, {train}).status());
  }
  TENON_ASSIGN_OR_RETURN(
      float result,
      session->Run<float>({{x, mnist.test.images}, {labels, mnist.test.labels}}, accuracy));
  std::cout << "accuracy " << result << '\n';
  return OkStatus();
}

int main() { std::cout << Train() << '\n'; }
