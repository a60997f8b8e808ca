// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/scope.h"
#include "train/variables.h"

namespace tenon {

/// Plain gradient descent: v -= learning_rate * d loss / d v
/// (tf.train.GradientDescentOptimizer).
class GradientDescentOptimizer {
 public:
  explicit GradientDescentOptimizer(double learning_rate, std::string name = "GradientDescent")
      : learning_rate_(learning_rate), name_(std::move(name)) {}

  /// Adds the update of every trainable variable of `variables` to the graph and returns the node
  /// that runs one training step. When `global_step` has a node it is the reference of a variable
  /// that the step increments after the updates. Errors, such as a variable that the loss does not
  /// depend on, go to the scope's status.
  Node* Minimize(const Scope& scope, Output loss, const VariableSet& variables,
                 Output global_step = Output()) const;

 private:
  const double learning_rate_;
  const std::string name_;
};

}  // namespace tenon
