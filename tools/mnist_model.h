// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/building.h"

namespace tenon::tools {

/// The classic network of the distributed TensorFlow 1 tutorials, 784-100-10 with sigmoid, softmax
/// and gradient descent on the cross-entropy, as `tenon train mnist` and `tenon bench` use it.
/// examples/mnist_replica.cc builds the same line by line, for reading.
struct MnistModel {
  Output images;  // float [n,784]
  Output labels;  // float [n,10]
  Output cross_entropy;
  Output accuracy;
  Output summary;      // cost and accuracy
  Output histograms;   // a summary of the values of each weight and bias
  Output global_step;  // float scalar
  Node* train_op;
};

/// Adds the model to the graph that is being built.
MnistModel BuildMnistModel(double learning_rate);

}  // namespace tenon::tools
