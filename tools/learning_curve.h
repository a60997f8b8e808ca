// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tenon::tools {

/// What was seen of a training after so many steps.
struct LearningPoint {
  double step = 0;
  double loss = 0;      // of the steps since the point before, on average
  double accuracy = 0;  // on images that are not trained with; in [0, 1]
};

/// The course of a training as an SVG picture: the loss in training and the accuracy in validation
/// over the steps, each with its axis, a mark for each point. Of one point, the marks alone.
std::string LearningCurveSvg(const std::string& title, const std::vector<LearningPoint>& points);

}  // namespace tenon::tools
