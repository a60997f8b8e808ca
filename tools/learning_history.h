// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "data/event_file.h"
#include "tools/learning_curve.h"

namespace tenon::tools {

/// The points of a training's learning curve, kept in event files beside its checkpoints, so that a
/// training that goes on has those that were drawn before. TensorBoard shows them too, as
/// learning_curve/cost and learning_curve/validation_accuracy. Used by one thread at a time.
class LearningHistory {
 public:
  /// The points that a training knows which begins at `step`, and has `folder` for its checkpoints;
  /// without a folder, none. What an earlier process added after `step` is lost with its steps. A
  /// file that is damaged gives the points before the damage. The errors of EventWriter::Create.
  static StatusOr<std::unique_ptr<LearningHistory>> Open(const std::string& folder, int64_t step);

  /// The next point; points of its step and later ones have been taken back.
  Status Add(const LearningPoint& point);
  const std::vector<LearningPoint>& points() const { return points_; }

 private:
  /// Takes back the points after `step`.
  void ForgetAfter(double step);
  void ReadFile(const std::string& path);
  void Keep(const LearningPoint& point);

  std::vector<LearningPoint> points_;
  std::unique_ptr<EventWriter> writer_;  // null without a folder
};

}  // namespace tenon::tools
