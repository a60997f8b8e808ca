// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "data/records/event_file.h"
#include "tools/learning_curve.h"

namespace tenon::tools {

/// The points of a training's learning curve, kept in event files beside its checkpoints, so that a
/// training that goes on has those that were drawn before. TensorBoard shows them too, as
/// learning_curve/cost and learning_curve/validation_accuracy. Used by one thread at a time.
class LearningHistory {
 public:
  /// The points that a training knows which begins at `step`, and has `folder` for its checkpoints;
  /// without a folder, none. What an earlier process added after `step` is lost with its steps. A
  /// file that is damaged gives the points before the damage.
  LearningHistory(std::string folder, int64_t step);

  /// The next point; points of its step and later ones have been taken back. The errors of
  /// EventWriter: the point is there all the same, and is written with the next one.
  Status Add(const LearningPoint& point);
  const std::vector<LearningPoint>& points() const { return points_; }

 private:
  /// Takes back the points after `step`.
  void ForgetAfter(double step);
  void ReadFile(const std::string& path);
  void Keep(const LearningPoint& point);
  Status WriteMissing();
  Status Write(const LearningPoint& point);

  const std::string folder_;
  const int64_t begin_;
  std::vector<LearningPoint> points_;
  size_t written_ = 0;                   // so many of the points are in files
  bool has_begun_ = false;               // which a file says
  std::unique_ptr<EventWriter> writer_;  // null until there is something to write
};

}  // namespace tenon::tools
