// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/variables.h"

namespace tenon {

struct MinimizeOptions {
  /// The reference of a variable that the step increments after the updates.
  Output global_step = {};
  std::source_location location = std::source_location::current();
};

/// Plain gradient descent: v -= learning_rate * d loss / d v
/// (tf.train.GradientDescentOptimizer).
class GradientDescent {
 public:
  explicit GradientDescent(double learning_rate, std::string name = "GradientDescent")
      : learning_rate_(learning_rate), name_(std::move(name)) {}

  /// Adds the update of every trainable variable to the graph that is being built, and returns the
  /// node that runs one training step. A variable that the loss does not depend on is a mistake.
  Node* Minimize(const Output& loss, const MinimizeOptions& options = {}) const;

 private:
  const double learning_rate_;
  const std::string name_;
};

}  // namespace tenon
