// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/build/building.h"

namespace tenon {

/// What a layer does in training and what otherwise: `training` is a bool, which chooses when the
/// graph is built, or a bool scalar, which chooses in the step (tf.layers' argument of that name).
class TrainingFlag {
 public:
  /// A mistake when `training` is neither.
  explicit TrainingFlag(const Input& training);

  /// When the graph says it.
  const std::optional<bool>& known() const { return known_; }
  /// The bool scalar; when the graph says it, without a node.
  const Output& tensor() const { return tensor_; }
  /// What one of them builds, or, in the step, the one that is chosen: as many values.
  std::vector<Output> Choose(const std::function<std::vector<Output>()>& in_training,
                             const std::function<std::vector<Output>()>& otherwise) const;

 private:
  std::optional<bool> known_;
  Output tensor_;
};

}  // namespace tenon
