// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/build/building.h"
#include "train/optimizers/optimizer.h"

namespace tenon::tools {

/// The networks for handwritten digits that `tenon train mnist` knows.
enum class MnistNetwork {
  kClassic,  // 784-100-10, sigmoid: that of distributed TensorFlow 1's tutorials
  kMlp,      // 784-128-64-10, ReLU
  kConv,     // two convolutions and two dense layers, with dropout
};

struct MnistModel {
  Output images, labels;  // fed: [n, 784], each pixel in [0, 1], and [n, 10], one-hot
  Output training;        // fed with true in training; without a node when the network does not ask
  Output loss, accuracy;  // scalars
  Node* train_op = nullptr;
  Output summary, histograms;  // of each step, and of the variables
};

/// Adds the network, and its training by `optimizer` with the graph's step counter, to the graph
/// being built. Variables are placed as what is entered says.
MnistModel BuildMnistModel(MnistNetwork network, Optimizer& optimizer);

}  // namespace tenon::tools
