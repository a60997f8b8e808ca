// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/hash_map.h"
#include "train/variables.h"

namespace tenon {

struct ExponentialMovingAverageOptions {
  /// A step counter: averages follow faster while it is low, the decay being at most
  /// (1 + num_updates) / (10 + num_updates).
  Output num_updates = {};
  std::string name = "ExponentialMovingAverage";
};

/// Running averages of variables, with which a model often does better than with the last values
/// (tf.train.ExponentialMovingAverage; Polyak and Juditsky 1992):
/// average = decay * average + (1 - decay) * variable.
///
///   ExponentialMovingAverage averages(0.999, {.num_updates = step});
///   Node* train = optimizer.Minimize(loss);
///   {
///     const ControlDependencies after({train});
///     train = averages.Apply();
///   }
///   Saver restores_averages({.variables = averages.VariablesToRestore()});
///
/// Averages are variables beside theirs, of the same kind, not trainable, with TensorFlow's names
/// ["w/ExponentialMovingAverage"]; they begin as the variables do. One object serves one graph; not
/// thread-safe.
class ExponentialMovingAverage {
 public:
  /// `decay`: a number below 1, or a scalar of the graph.
  explicit ExponentialMovingAverage(const Input& decay,
                                    const ExponentialMovingAverageOptions& options = {})
      : decay_(decay), options_(options) {}

  /// Adds the update of the averages of Variables, the trainable ones of the graph by default, and
  /// the averages that are not there yet. The node updates them. InvalidArgument for what is no
  /// Variable of floating point.
  Node* Apply(const std::vector<Output>& variables = {},
              const std::source_location& at = std::source_location::current());

  /// The average of a variable; one without nodes when it has none.
  Variable Average(const Output& variable) const;
  /// The name of the average of a variable, or that which it would have.
  std::string AverageName(const Output& variable) const;
  /// What a Saver restores so that variables get their averages: the trainable variables, and those
  /// that have an average, by AverageName, and all others that are not local by their own names.
  std::vector<std::pair<std::string, Output>> VariablesToRestore() const;

 private:
  void MakeAverage(const VariableEntry& variable);

  const Input decay_;
  const ExponentialMovingAverageOptions options_;
  flat_hash_map<const Node*, VariableEntry> averages_;
};

}  // namespace tenon
